"""processors/delay_delivery.py: due messages arrive once, in order, with all properties."""

import asyncio

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.processors import delay_delivery
from core_broker.processors.delay_delivery import (
    CLOCK_CHECK_MS,
    CONFIRM_CHECK_MS,
    RETRY_MS,
    UNCONFIRMED_MAX,
)
from core_broker.store import PutResult, PutStatus
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import pull_header
from tests.support.eventually import eventually
from tests.support.unit_damage import PLACE_CASES

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


async def later(broker: BrokerHarness, level: int, body: bytes = b"x", queue_id: int = 2) -> None:
    properties = f"DELAY\x01{level}\x02TAGS\x01A\x02WAIT\x01true"
    assert (await broker.send("T", body, properties, queue_id=queue_id)).code == 0


async def test_delivery_at_the_due_time_with_all_properties(
    broker: BrokerHarness, topic: str
) -> None:
    await later(broker, 2)
    broker.now_ms += 4_999
    assert broker.delays.deliver_due() == 1
    assert await broker.messages(topic, 2) == []
    broker.now_ms += 1
    broker.delays.deliver_due()
    (delivered,) = await broker.messages(topic, 2)
    assert delivered.properties == {
        "DELAY": "2",
        "TAGS": "A",
        "WAIT": "true",
        "CLUSTER": "DefaultCluster",
        "REAL_TOPIC": topic,
        "REAL_QID": "2",
    }
    (unit,) = broker.ctx.store.queue_units(topic, 2, 0, 1)
    assert unit.tags_code == 65
    assert broker.ctx.delay_progress.offset(2) == 1
    assert broker.ctx.statistics.totals()["TOPIC_PUT_NUMS"][topic] == 1


async def test_once_and_in_order(broker: BrokerHarness, topic: str) -> None:
    for number in range(5):
        await later(broker, 1, b"%d" % number)
        broker.now_ms += 10
    broker.now_ms += 1_000
    for _ in range(3):
        broker.delays.deliver_due()
    assert [each.body for each in await broker.messages(topic, 2)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_hidden_messages_are_not_delivered_again(broker: BrokerHarness, topic: str) -> None:
    """After a restart the confirm offset may be older than the progress."""
    for number in range(3):
        await later(broker, 2, b"%d" % number)
    broker.now_ms += 5_000
    broker.delays.deliver_due()
    gate = broker.ctx.store.gate
    gate.close()
    assert broker.ctx.store.queue_range(SCHEDULE, 1) == (0, 0)
    broker.delays.deliver_due()
    assert broker.ctx.delay_progress.offset(2) == 3
    gate.open()
    await later(broker, 2, b"3")
    broker.now_ms += 5_000
    broker.delays.deliver_due()
    assert [each.body for each in await broker.messages(topic, 2)] == [b"0", b"1", b"2", b"3"]


class TestBehindAClosedGate:
    """A failover may drop a delivery before its confirmation."""

    async def gated(self, broker: BrokerHarness, count: int, level: int = 1) -> None:
        """Store confirmed delayed messages that are due."""
        for number in range(count):
            await later(broker, level, b"%d" % number)
        self.confirm(broker)
        broker.ctx.store.gate.close()
        broker.now_ms += 5_000

    def confirm(self, broker: BrokerHarness) -> None:
        broker.ctx.store.gate.confirm(broker.ctx.store.max_offset_physical)

    async def test_progress_counts_confirmed_deliveries(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await self.gated(broker, 3)
        assert broker.delays.deliver_due() <= CONFIRM_CHECK_MS
        end = broker.ctx.store.max_offset_physical
        broker.delays.deliver_due()
        assert broker.ctx.store.max_offset_physical == end, "each is delivered once"
        assert broker.ctx.delay_progress.levels == []
        self.confirm(broker)
        assert broker.delays.deliver_due() == CLOCK_CHECK_MS
        assert broker.ctx.delay_progress.offset(1) == 3
        assert [each.body for each in await broker.messages(topic, 2)] == [b"0", b"1", b"2"]

    async def test_a_part_of_the_deliveries_is_confirmed(
        self, broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delay_delivery, "DELIVERED_PER_TURN_MAX", 2)
        await self.gated(broker, 6)
        broker.delays.deliver_due()
        end = broker.ctx.store.max_offset_physical
        broker.delays.deliver_due()
        broker.ctx.store.gate.confirm(end)
        broker.delays.deliver_due()
        assert broker.ctx.delay_progress.offset(1) == 2
        self.confirm(broker)
        broker.delays.deliver_due()
        assert broker.ctx.delay_progress.offset(1) == 6
        assert len(await broker.messages(topic, 2)) == 6

    async def test_delivery_waits_for_the_confirmation_of_many(
        self, broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delay_delivery, "DELIVERED_PER_TURN_MAX", 1)
        await self.gated(broker, UNCONFIRMED_MAX + 3)
        for _ in range(UNCONFIRMED_MAX + 5):
            broker.delays.deliver_due()
        broker.ctx.store.gate.open()
        assert broker.ctx.store.queue_range(topic, 2) == (0, UNCONFIRMED_MAX)
        for _ in range(3):
            broker.delays.deliver_due()
        assert broker.ctx.store.queue_range(topic, 2) == (0, UNCONFIRMED_MAX + 3)
        assert broker.ctx.delay_progress.offset(1) == UNCONFIRMED_MAX + 3

    async def test_a_later_run_delivers_unconfirmed_messages_again(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        """The broker was deposed meanwhile, and its deliveries may be truncated."""
        await self.gated(broker, 2)
        broker.delays.deliver_due()
        broker.ctx.store.gate.open()
        assert await delivered_by_the_loop(broker, topic, 4) == [b"0", b"1", b"0", b"1"]
        assert broker.ctx.delay_progress.offset(1) == 2


async def test_levels_are_independent(broker: BrokerHarness, topic: str) -> None:
    await later(broker, 4, b"30 s")
    await later(broker, 1, b"1 s")
    broker.now_ms += 1_000
    broker.delays.deliver_due()
    assert [each.body for each in await broker.messages(topic, 2)] == [b"1 s"]


async def test_many_are_delivered_in_several_turns(
    broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay_delivery, "DELIVERED_PER_TURN_MAX", 2)
    for _ in range(5):
        await later(broker, 1)
    broker.now_ms += 1_000
    waits = [broker.delays.deliver_due() for _ in range(3)]
    assert waits == [0, 0, CLOCK_CHECK_MS]
    assert broker.ctx.store.queue_range(topic, 2) == (0, 5)


async def test_a_clock_set_back_delivers_at_once(broker: BrokerHarness, topic: str) -> None:
    await later(broker, 1)
    broker.now_ms -= 3_600_000
    broker.delays.deliver_due()
    assert len(await broker.messages(topic, 2)) == 1


async def test_delivery_wakes_a_held_pull(broker: BrokerHarness, topic: str) -> None:
    request = broker.request(11, pull_header(topic, sys_flag=6, queue_id=2))
    assert broker.give(request) is None
    await later(broker, 1)
    broker.now_ms += 1_000
    broker.delays.deliver_due()
    assert broker.client.answers[request.opaque].code == 0


async def test_a_full_disk_postpones_delivery(
    broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(broker, 1)
    broker.now_ms += 1_000
    with monkeypatch.context() as patch:
        refused = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
        patch.setattr(broker.ctx.store, "put", lambda inner: refused)
        assert broker.delays.deliver_due() == min(RETRY_MS, CLOCK_CHECK_MS)
        assert broker.ctx.delay_progress.offset(1) == 0
    broker.delays.deliver_due()
    assert len(await broker.messages(topic, 2)) == 1


async def test_progress_is_not_made_when_the_turn_is_not_written(
    broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(broker, 1)
    broker.now_ms += 1_000

    def fail() -> None:
        raise StoreReadOnly("disk failed")

    with monkeypatch.context() as patch:
        patch.setattr(broker.ctx.store, "write_staged", fail)
        with pytest.raises(StoreReadOnly):
            broker.delays.deliver_due()
    assert broker.ctx.delay_progress.offset(1) == 0


async def test_an_unstorable_message_does_not_block_delivery(
    broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(broker, 1, b"first")
    await later(broker, 1, b"second")
    broker.now_ms += 1_000
    put = broker.ctx.store.put

    def refuse_first(inner):  # type: ignore[no-untyped-def]
        return PutResult(PutStatus.MESSAGE_ILLEGAL) if inner.body == b"first" else put(inner)

    monkeypatch.setattr(broker.ctx.store, "put", refuse_first)
    broker.delays.deliver_due()
    assert [each.body for each in await broker.messages(topic, 2)] == [b"second"]


async def test_an_unreadable_message_does_not_block_delivery(
    broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(broker, 1, b"first")
    await later(broker, 1, b"second")
    broker.now_ms += 1_000
    read_at = broker.ctx.store.read_at

    def damaged(offset: int, size: int | None = None) -> bytes | None:
        return None if offset == 0 else read_at(offset, size)

    monkeypatch.setattr(broker.ctx.store, "read_at", damaged)
    assert await delivered_by_the_loop(broker, topic, 1) == [b"second"]


@pytest.mark.parametrize("case", PLACE_CASES)
async def test_a_message_with_a_damaged_unit_is_delivered(
    broker: BrokerHarness, topic: str, case: str
) -> None:
    for body in (b"first", b"second", b"third"):
        await later(broker, 1, body)
    broker.now_ms += 1_000
    queue = broker.ctx.store._queues.get(SCHEDULE, 0)
    assert queue is not None
    queue.replace(1, PLACE_CASES[case](queue.read(1, 1)))
    assert await delivered_by_the_loop(broker, topic, 3) == [b"first", b"second", b"third"]
    assert broker.ctx.store.stats().repaired_units == 1


async def delivered_by_the_loop(broker: BrokerHarness, topic: str, count: int) -> list[bytes]:
    """Run the delivery until `count` messages have arrived."""
    task = asyncio.create_task(broker.delays.run())
    await eventually(lambda: broker.ctx.store.queue_range(topic, 2)[1] >= count)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [each.body for each in await broker.messages(topic, 2)]


async def test_the_loop_wakes_for_a_message_in_an_idle_level(
    broker: BrokerHarness, topic: str
) -> None:
    task = asyncio.create_task(broker.delays.run())
    await asyncio.sleep(0)
    await later(broker, 1)
    broker.now_ms += 1_000
    await eventually(lambda: broker.ctx.store.queue_range(topic, 2)[1])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
