"""Consumption of groups with a large lag is disabled, if the settings say so."""

import pytest

from core_broker.processors.groups import disable_slow_groups
from core_broker.state import slow_groups
from core_broker.state.slow_groups import SlowGroups
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def fill(broker: BrokerHarness) -> None:
    broker.topic()
    for _ in range(4):
        await broker.send("T", b"x" * 1000)


async def test_a_group_that_lags(make_broker: MakeBroker) -> None:
    broker = make_broker(
        disable_consume_if_consumer_read_slowly=True, consumer_fallbehind_threshold=2_000
    )
    await fill(broker)
    await broker.pull("T", 0, max_msg_nums=1, consumer_group="Slow")
    await broker.pull("T", 3, consumer_group="Quick")
    disable_slow_groups(broker.ctx)
    assert (await broker.pull("T", 1, consumer_group="Slow")).code == 16
    assert (await broker.pull("T", 3, consumer_group="Quick")).code == 0
    assert broker.saver.saved.count("subscriptionGroup.json") == 3


async def test_a_group_without_lag(make_broker: MakeBroker) -> None:
    broker = make_broker(
        disable_consume_if_consumer_read_slowly=True, consumer_fallbehind_threshold=2_000
    )
    await fill(broker)
    await broker.pull("T", 0, max_msg_nums=1)
    await broker.pull("T", 1)
    disable_slow_groups(broker.ctx)
    assert (await broker.pull("T", 3)).code == 0


async def test_switched_off(make_broker: MakeBroker) -> None:
    broker = make_broker(consumer_fallbehind_threshold=1)
    await fill(broker)
    await broker.pull("T", 0, max_msg_nums=1)
    disable_slow_groups(broker.ctx)
    assert (await broker.pull("T", 1)).code == 0


def test_the_notes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_groups, "QUEUES_RECORDED_MAX", 2)
    notes = SlowGroups()
    for queue in range(5):
        notes.note("G", "T", queue, 10)
    notes.note("G", "T", 0, 1)
    notes.note("H", "T", 0, 99)
    assert notes.take(5) == ["G"]
    assert notes.take(0) == []
