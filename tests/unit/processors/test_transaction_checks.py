"""Rounds of transaction checks: checked producers, renewed and discarded half messages."""

from typing import Any

import pytest

from core_broker.message.record import decode_record
from core_broker.message.topics import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)
from core_broker.processors import transaction_checks
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.headers import (
    CheckTransactionStateRequestHeader,
)
from core_broker.state.half_messages import op_message
from core_broker.state.statistics import GROUP_GET_NUMS
from core_broker.store import PutResult, PutStatus
from tests.support.broker_harness import BrokerHarness
from tests.support.half_messages import (
    COMMIT,
    HALF,
    ROLLBACK,
    TIMEOUT_MS,
    asked,
    begin,
    end,
    old,
    producer,
    progress,
)
from tests.support.unit_damage import PLACE_CASES
from tests.unit.processors.conftest import MakeBroker

pytestmark = pytest.mark.usefixtures("topic")


@pytest.mark.parametrize("case", PLACE_CASES)
@pytest.mark.parametrize("topic", [TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC])
async def test_damaged_units_are_rebuilt(broker: BrokerHarness, topic: str, case: str) -> None:
    """No half message is hidden, and no ended transaction is checked again."""
    peer = await producer(broker)
    ended = [await old(broker), await old(broker)]
    await old(broker)
    for half in ended:
        await end(broker, half, COMMIT)
    queue = broker.ctx.store._queues.get(topic, 0)
    assert queue is not None
    damaged = queue.max_offset - 1
    queue.replace(damaged, PLACE_CASES[case](queue.read(damaged, 1)))
    await broker.check_half_messages()
    assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3"]
    assert broker.ctx.store.stats().repaired_units == 1


async def test_a_producer_is_asked_about_a_copy(broker: BrokerHarness) -> None:
    peer = await producer(broker)
    half = await old(broker, flag=3)
    await broker.check_half_messages()
    first, copy = await broker.messages(TRANS_HALF_TOPIC)
    assert (first.queue_offset, copy.queue_offset) == (0, 1)
    assert copy.properties == first.properties | {"TRANSACTION_CHECK_TIMES": "1"}
    assert (copy.body, copy.flag, copy.born_timestamp) == (b"half", 3, half.born_timestamp)
    (question,) = asked(peer)
    assert question.ext_fields == {
        "commitLogOffset": str(copy.offset_physical),
        "msgId": "U1",
        "offsetMsgId": copy.offset_msg_id,
        "tranStateTableOffset": "1",
        "transactionId": "U1",
    }
    assert (
        broker.ctx.statistics.totals()[GROUP_GET_NUMS][f"{TRANS_HALF_TOPIC}@CID_RMQ_SYS_TRANS"] == 1
    )
    shown = decode_record(question.body)
    assert (shown.topic, shown.queue_id) == ("T", 2)
    assert (shown.queue_offset, shown.offset_physical) == (1, copy.offset_physical)
    assert shown.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert progress(broker) == (1, 0)


async def test_the_answer_to_a_check_ends_the_transaction(broker: BrokerHarness) -> None:
    peer = await producer(broker)
    await old(broker)
    await broker.check_half_messages()
    question = asked(peer)[0].header(CheckTransactionStateRequestHeader)
    copy = (await broker.messages(TRANS_HALF_TOPIC))[-1]
    assert question.commit_log_offset == copy.offset_physical
    assert (await end(broker, copy, COMMIT, from_transaction_check=True)).code == 0
    for _ in range(3):
        broker.now_ms += 60_000
        await broker.check_half_messages()
    assert len(asked(peer)) == 1
    assert len(await broker.messages(TRANS_HALF_TOPIC)) == 2
    assert [each.body for each in await broker.messages("T", 2)] == [b"half"]
    assert progress(broker) == (2, 2)


@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
async def test_ended_transactions_are_not_checked(broker: BrokerHarness, how: int) -> None:
    peer = await producer(broker)
    halves = [await begin(broker, born_timestamp=broker.now_ms) for _ in range(5)]
    for number in (3, 0, 4, 1):
        await end(broker, halves[number], how)
    broker.now_ms += TIMEOUT_MS
    await broker.check_half_messages()
    assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["5"]
    assert progress(broker) == (5, 4)


async def test_young_half_messages_wait(broker: BrokerHarness) -> None:
    peer = await producer(broker)
    await begin(broker, born_timestamp=broker.now_ms)
    broker.now_ms += TIMEOUT_MS - 1
    await broker.check_half_messages()
    assert asked(peer) == []
    broker.now_ms += 1
    await broker.check_half_messages()
    assert len(asked(peer)) == 1
    # The round stored the copy, and sends a single check.
    assert len(await broker.messages(TRANS_HALF_TOPIC)) == 2


async def test_the_producers_of_a_group_take_turns(broker: BrokerHarness) -> None:
    peers = [await producer(broker, f"p{number}") for number in range(3)]
    stranger = await producer(broker, "x", "other")
    for _ in range(6):
        await begin(broker, born_timestamp=broker.now_ms)
    broker.now_ms += TIMEOUT_MS
    await broker.check_half_messages()
    assert [len(asked(peer)) for peer in peers] == [2, 2, 2]
    assert asked(stranger) == []


async def test_a_disconnected_producer_is_skipped(broker: BrokerHarness) -> None:
    gone, there = await producer(broker, "p1"), await producer(broker, "p2")
    gone.close("gone")
    for _ in range(4):
        await begin(broker, born_timestamp=broker.now_ms)
    broker.now_ms += TIMEOUT_MS
    await broker.check_half_messages()
    assert len(asked(there)) == 4


async def test_without_a_producer_checks_are_counted(broker: BrokerHarness) -> None:
    await old(broker)
    await broker.check_half_messages()
    copy = (await broker.messages(TRANS_HALF_TOPIC))[-1]
    assert copy.properties["TRANSACTION_CHECK_TIMES"] == "1"
    peer = await producer(broker)
    broker.now_ms += 60_000
    await broker.check_half_messages()
    assert asked(peer)[0].ext_fields["tranStateTableOffset"] == "2"


async def test_given_up_after_the_last_check(make_broker: MakeBroker) -> None:
    broker = make_broker(transaction_check_max=2)
    broker.topic()
    peer = await producer(broker)
    await old(broker)
    for _ in range(5):
        await broker.check_half_messages()
        broker.now_ms += 60_000
    assert len(asked(peer)) == 2
    (given,) = await broker.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert given.properties["TRANSACTION_CHECK_TIMES"] == "2"
    assert (given.queue_id, given.body) == (0, b"half")
    assert broker.ctx.topics.get(TRANS_CHECK_MAX_TIME_TOPIC) is not None
    assert progress(broker) == (3, 2)


async def test_discarded_when_its_files_may_expire(make_broker: MakeBroker) -> None:
    broker = make_broker(file_reserved_time=1)
    broker.topic()
    peer = await producer(broker)
    await begin(broker, born_timestamp=broker.now_ms - 3_600_001)
    await broker.check_half_messages()
    assert asked(peer) == []
    assert len(await broker.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1


class TestImmunity:
    SHIELDED = HALF + "\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x01100"

    async def test_no_check_during_the_immunity_time(self, broker: BrokerHarness) -> None:
        peer = await producer(broker)
        await old(broker, self.SHIELDED)
        for _ in range(2):
            await broker.check_half_messages()
            broker.now_ms += 10_000
        assert asked(peer) == []
        copy = (await broker.messages(TRANS_HALF_TOPIC))[-1]
        assert copy.queue_offset == 2
        assert copy.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
        assert "TRANSACTION_CHECK_TIMES" not in copy.properties
        broker.now_ms += 100_000
        await broker.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_the_producer_can_end_by_the_first_offset(self, broker: BrokerHarness) -> None:
        peer = await producer(broker)
        half = await old(broker, self.SHIELDED)
        await broker.check_half_messages()
        assert (await end(broker, half, COMMIT)).code == 0
        broker.now_ms += 200_000
        await broker.check_half_messages()
        assert asked(peer) == []
        assert len(await broker.messages("T", 2)) == 1
        assert progress(broker) == (2, 2)


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_late_answer_ends_the_copy_too(broker: BrokerHarness, is_restarted: bool) -> None:
    """A transaction is committed after its timeout and its first check."""
    peer = await producer(broker)
    half = await old(broker)
    await broker.check_half_messages()
    if is_restarted:
        broker.checks = TransactionChecks(broker.ctx, broker.requests.turn)
    await end(broker, half, COMMIT)
    for _ in range(3):
        broker.now_ms += 60_000
        await broker.check_half_messages()
    assert len(asked(peer)) == 1
    assert len(await broker.messages("T", 2)) == 1


class TestBounds:
    async def test_many_messages_take_several_turns(
        self, broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transaction_checks, "HALVES_READ_PER_TURN_MAX", 2)
        monkeypatch.setattr(transaction_checks, "HALVES_SEEN_PER_TURN_MAX", 3)
        monkeypatch.setattr(transaction_checks, "OPS_PER_TURN_MAX", 2)
        peer = await producer(broker)
        halves = [await begin(broker, born_timestamp=broker.now_ms) for _ in range(20)]
        for half in halves[::2]:
            await end(broker, half, COMMIT)
        broker.now_ms += TIMEOUT_MS
        await broker.check_half_messages()
        assert len(asked(peer)) == 10
        # The op messages of moved half messages are needed until the copies are settled.
        assert progress(broker) == (20, 0)
        broker.now_ms += 60_000
        for copy in (await broker.messages(TRANS_HALF_TOPIC))[20:]:
            await end(broker, copy, ROLLBACK)
        await broker.check_half_messages()
        assert progress(broker) == (30, 30)

    async def test_properties_without_room_for_a_count(self, broker: BrokerHarness) -> None:
        """A half message whose renewed copy the store refuses does not block the others."""
        peer = await producer(broker)
        await old(broker, HALF + "\x02K\x01long")
        put = broker.ctx.store.put

        def narrow(inner: Any) -> PutResult:
            if "TRANSACTION_CHECK_TIMES" in inner.properties and "K" in inner.properties:
                return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED)
            return put(inner)

        broker.ctx.store.put = narrow  # type: ignore[method-assign]
        await old(broker)
        await broker.check_half_messages()
        assert len(await broker.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1
        assert len(asked(peer)) == 1

    async def test_ops_of_rocketmq_5_name_several(self, broker: BrokerHarness) -> None:
        peer = await producer(broker)
        halves = [await begin(broker, born_timestamp=broker.now_ms) for _ in range(3)]
        await end(broker, halves[0], COMMIT)
        (op,) = await broker.messages(TRANS_OP_HALF_TOPIC)
        inner = op_message(halves[1], ("127.0.0.1", 1), broker.now_ms)
        inner.body = b"1,2,"
        broker.ctx.store.put(inner)
        inner.body = b"x,,-1,99999999999999999999999,"
        broker.ctx.store.put(inner)
        broker.now_ms += TIMEOUT_MS
        await broker.check_half_messages()
        assert asked(peer) == []
        assert op.body == b"0"
        assert progress(broker) == (3, 3)
