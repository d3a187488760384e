"""The progress that a truncation takes back: deliveries, transactions, consumer offsets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from core_broker.ha.rollback import plan_rollback, roll_back
from core_broker.message.topics import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, TRANSACTION_GROUP
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.state.half_messages import HALF_QUEUE_ID, op_message
from tests.support.broker_harness import BrokerHarness
from tests.support.half_messages import COMMIT, begin, end, old, producer
from tests.support.stores import StillLoop


@pytest_asyncio.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerHarness]:
    made = BrokerHarness(tmp_path)
    made.topic("T")
    yield made
    made.close()


def log_end(broker: BrokerHarness) -> int:
    return broker.ctx.store.max_offset_physical


def truncate(broker: BrokerHarness, point: int) -> None:
    """Truncate store and tables; progress in memory is dropped as by a change of the role."""
    ctx, store = broker.ctx, broker.ctx.store
    store.pause()
    store.truncator.begin(point, point, plan_rollback(store, point, ctx.delay_progress))
    store.reload()
    assert store.truncator.pending is not None
    for _ in range(2):  # the second time is the start after a crash
        roll_back(store.truncator.pending, ctx.offsets, ctx.delay_progress)
    store.truncator.end()
    store.start(StillLoop())  # type: ignore[arg-type]
    broker.checks = TransactionChecks(ctx, broker.requests.turn)


async def delayed(broker: BrokerHarness, level: int, body: bytes) -> None:
    properties = f"DELAY\x01{level}\x02WAIT\x01true"
    assert (await broker.send("T", body, properties, queue_id=1)).code == 0


async def test_a_dropped_delivery_happens_again(broker: BrokerHarness) -> None:
    await delayed(broker, 1, b"delivered before")
    broker.now_ms += 1_000
    broker.delays.deliver_due()
    await delayed(broker, 1, b"first")
    await delayed(broker, 2, b"second level")
    await delayed(broker, 1, b"second")
    point = log_end(broker)
    broker.now_ms += 10_000
    broker.delays.deliver_due()
    await broker.send("T", b"dropped", queue_id=1)
    await delayed(broker, 1, b"dropped")
    assert len(await broker.messages("T", 1)) == 5
    truncate(broker, point)
    assert [each.body for each in await broker.messages("T", 1)] == [b"delivered before"]
    broker.delays.deliver_due()
    bodies = [each.body for each in await broker.messages("T", 1)]
    assert sorted(bodies) == [b"delivered before", b"first", b"second", b"second level"]


async def test_a_delivery_without_its_level_counts_for_every_level(broker: BrokerHarness) -> None:
    """RocketMQ removes the level from a delivered message."""
    for level in (1, 2):
        await delayed(broker, level, b"x")
    broker.now_ms += 10_000
    point = log_end(broker)
    await broker.send("T", b"x", "REAL_TOPIC\x01T\x02REAL_QID\x011", queue_id=1)
    for level in (1, 2):
        broker.ctx.delay_progress.advance(level, 1)
    truncate(broker, point)
    assert [broker.ctx.delay_progress.offset(level) for level in (1, 2)] == [0, 0]


async def test_progress_ends_with_the_queue_of_the_level(broker: BrokerHarness) -> None:
    point = log_end(broker)
    for _ in range(3):
        await delayed(broker, 1, b"x")
    broker.ctx.delay_progress.advance(1, 3)
    truncate(broker, point)
    assert broker.ctx.delay_progress.offset(1) == 0


async def test_other_deliveries_stay_delivered(broker: BrokerHarness) -> None:
    await delayed(broker, 1, b"x")
    broker.now_ms += 1_000
    broker.delays.deliver_due()
    point = log_end(broker)
    await broker.send("T", b"plain", queue_id=1)
    truncate(broker, point)
    broker.delays.deliver_due()
    assert [each.body for each in await broker.messages("T", 1)] == [b"x"]


async def test_a_half_message_is_pending_again_without_its_op_message(
    broker: BrokerHarness,
) -> None:
    peer = await producer(broker)
    ended = await begin(broker)
    await end(broker, ended, COMMIT)
    half = await old(broker)
    point = log_end(broker)
    await end(broker, half, COMMIT)
    await broker.check_half_messages()
    assert saved(broker) == [2, 2]
    peer.told.clear()
    truncate(broker, point)
    assert len(await broker.messages("T", 2)) == 1
    assert saved(broker) == [1, 1]
    broker.now_ms += 10_000
    await broker.check_half_messages()
    assert [each.code for each in peer.told] == [39]


def saved(broker: BrokerHarness) -> list[int | None]:
    return [
        broker.ctx.offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC)
    ]


async def test_a_dropped_discard_repeats_all_checks(broker: BrokerHarness) -> None:
    """The copy of a discarded half message does not tell which half message it was."""
    await begin(broker, born_timestamp=broker.now_ms)
    point = log_end(broker)
    broker.now_ms += 100 * 3_600_000
    await broker.check_half_messages()
    assert len(await broker.messages("TRANS_CHECK_MAX_TIME_TOPIC")) == 1
    assert saved(broker)[0] == 1
    truncate(broker, point)
    assert await broker.messages("TRANS_CHECK_MAX_TIME_TOPIC") == []
    await broker.check_half_messages()
    assert len(await broker.messages("TRANS_CHECK_MAX_TIME_TOPIC")) == 1


@pytest.mark.parametrize("body", [b"", b"x", b"99999999999999999999", b"0"])
async def test_an_op_message_that_names_nothing_repeats_all_checks(
    broker: BrokerHarness, body: bytes
) -> None:
    await begin(broker)
    half = await begin(broker)
    await end(broker, half, COMMIT)
    point = log_end(broker)
    for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
        broker.ctx.offsets.commit(TRANSACTION_GROUP, topic, HALF_QUEUE_ID, 1)
    op = op_message(half, ("127.0.0.1", 1), broker.now_ms)
    op.body = body
    broker.ctx.store.put(op)
    broker.requests.turn.end()
    truncate(broker, point)
    assert saved(broker) == [0, 0]


async def test_consumer_offsets_end_with_their_queues(broker: BrokerHarness) -> None:
    offsets = broker.ctx.offsets
    for queue_id in (0, 1):
        for _ in range(4):
            await broker.send("T", b"x", queue_id=queue_id)
    point = log_end(broker)
    for _ in range(3):
        await broker.send("T", b"x", queue_id=0)
    offsets.commit("ahead", "T", 0, 6)
    offsets.commit("behind", "T", 0, 2)
    offsets.commit("other queue", "T", 1, 9)
    offsets.commit("other topic", "U", 0, 9)
    truncate(broker, point)
    assert sorted((group, offset) for group, _, _, offset in offsets.rows()) == [
        ("ahead", 4),
        ("behind", 2),
        ("other queue", 9),
        ("other topic", 9),
    ]
