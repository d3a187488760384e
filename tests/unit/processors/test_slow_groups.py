"""Groups that read too far behind are switched off, where the settings say so."""

import pytest

from core_broker.processors.groups import disable_slow_groups
from core_broker.state import slow_groups
from core_broker.state.slow_groups import SlowGroups
from tests.support.desk import Desk
from tests.unit.processors.conftest import MakeDesk


async def fill(desk: Desk) -> None:
    desk.topic()
    for _ in range(4):
        await desk.send("T", b"x" * 1000)


async def test_a_group_that_lags(make_desk: MakeDesk) -> None:
    desk = make_desk(
        disable_consume_if_consumer_read_slowly=True, consumer_fallbehind_threshold=2_000
    )
    await fill(desk)
    await desk.pull("T", 0, max_msg_nums=1, consumer_group="Slow")
    await desk.pull("T", 3, consumer_group="Quick")
    disable_slow_groups(desk.ctx)
    assert (await desk.pull("T", 1, consumer_group="Slow")).code == 16
    assert (await desk.pull("T", 3, consumer_group="Quick")).code == 0
    assert desk.saver.saved.count("subscriptionGroup.json") == 3


async def test_one_that_has_caught_up(make_desk: MakeDesk) -> None:
    desk = make_desk(
        disable_consume_if_consumer_read_slowly=True, consumer_fallbehind_threshold=2_000
    )
    await fill(desk)
    await desk.pull("T", 0, max_msg_nums=1)
    await desk.pull("T", 1)
    disable_slow_groups(desk.ctx)
    assert (await desk.pull("T", 3)).code == 0


async def test_switched_off(make_desk: MakeDesk) -> None:
    desk = make_desk(consumer_fallbehind_threshold=1)
    await fill(desk)
    await desk.pull("T", 0, max_msg_nums=1)
    disable_slow_groups(desk.ctx)
    assert (await desk.pull("T", 1)).code == 0


def test_the_notes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_groups, "NOTES_MAX", 2)
    notes = SlowGroups()
    for queue in range(5):
        notes.note("G", "T", queue, 10)
    notes.note("G", "T", 0, 1)
    notes.note("H", "T", 0, 99)
    assert notes.take(5) == ["G"]
    assert notes.take(0) == []
