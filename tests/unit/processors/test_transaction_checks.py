"""Rounds of checks: whom the broker asks, what it stores again, what it gives up."""

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
from tests.support.desk import Desk
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
from tests.unit.processors.conftest import MakeDesk

pytestmark = pytest.mark.usefixtures("topic")


async def test_a_producer_is_asked_about_a_copy(desk: Desk) -> None:
    peer = await producer(desk)
    half = await old(desk, flag=3)
    await desk.check_half_messages()
    first, copy = await desk.messages(TRANS_HALF_TOPIC)
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
        desk.ctx.statistics.totals()[GROUP_GET_NUMS][f"{TRANS_HALF_TOPIC}@CID_RMQ_SYS_TRANS"] == 1
    )
    shown = decode_record(question.body)
    assert (shown.topic, shown.queue_id) == ("T", 2)
    assert (shown.queue_offset, shown.offset_physical) == (1, copy.offset_physical)
    assert shown.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert progress(desk) == (1, 0)


async def test_the_answer_ends_it(desk: Desk) -> None:
    peer = await producer(desk)
    await old(desk)
    await desk.check_half_messages()
    question = asked(peer)[0].header(CheckTransactionStateRequestHeader)
    copy = (await desk.messages(TRANS_HALF_TOPIC))[-1]
    assert question.commit_log_offset == copy.offset_physical
    assert (await end(desk, copy, COMMIT, from_transaction_check=True)).code == 0
    for _ in range(3):
        desk.now_ms += 60_000
        await desk.check_half_messages()
    assert len(asked(peer)) == 1
    assert len(await desk.messages(TRANS_HALF_TOPIC)) == 2
    assert [each.body for each in await desk.messages("T", 2)] == [b"half"]
    assert progress(desk) == (2, 2)


@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
async def test_what_has_ended_is_not_asked_about(desk: Desk, how: int) -> None:
    peer = await producer(desk)
    halves = [await begin(desk, born_timestamp=desk.now_ms) for _ in range(5)]
    for number in (3, 0, 4, 1):
        await end(desk, halves[number], how)
    desk.now_ms += TIMEOUT_MS
    await desk.check_half_messages()
    assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["5"]
    assert progress(desk) == (5, 4)


async def test_young_ones_wait(desk: Desk) -> None:
    peer = await producer(desk)
    await begin(desk, born_timestamp=desk.now_ms)
    desk.now_ms += TIMEOUT_MS - 1
    await desk.check_half_messages()
    assert asked(peer) == []
    desk.now_ms += 1
    await desk.check_half_messages()
    assert len(asked(peer)) == 1
    # The copy is of this round, so that it is asked about once.
    assert len(await desk.messages(TRANS_HALF_TOPIC)) == 2


async def test_the_producers_of_a_group_take_turns(desk: Desk) -> None:
    peers = [await producer(desk, f"p{number}") for number in range(3)]
    stranger = await producer(desk, "x", "other")
    for _ in range(6):
        await begin(desk, born_timestamp=desk.now_ms)
    desk.now_ms += TIMEOUT_MS
    await desk.check_half_messages()
    assert [len(asked(peer)) for peer in peers] == [2, 2, 2]
    assert asked(stranger) == []


async def test_one_that_left_is_passed_over(desk: Desk) -> None:
    gone, there = await producer(desk, "p1"), await producer(desk, "p2")
    gone.close("gone")
    for _ in range(4):
        await begin(desk, born_timestamp=desk.now_ms)
    desk.now_ms += TIMEOUT_MS
    await desk.check_half_messages()
    assert len(asked(there)) == 4


async def test_without_a_producer_it_is_kept_and_counted(desk: Desk) -> None:
    await old(desk)
    await desk.check_half_messages()
    copy = (await desk.messages(TRANS_HALF_TOPIC))[-1]
    assert copy.properties["TRANSACTION_CHECK_TIMES"] == "1"
    peer = await producer(desk)
    desk.now_ms += 60_000
    await desk.check_half_messages()
    assert asked(peer)[0].ext_fields["tranStateTableOffset"] == "2"


async def test_given_up_after_the_last_check(make_desk: MakeDesk) -> None:
    desk = make_desk(transaction_check_max=2)
    desk.topic()
    peer = await producer(desk)
    await old(desk)
    for _ in range(5):
        await desk.check_half_messages()
        desk.now_ms += 60_000
    assert len(asked(peer)) == 2
    (given,) = await desk.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert given.properties["TRANSACTION_CHECK_TIMES"] == "2"
    assert (given.queue_id, given.body) == (0, b"half")
    assert desk.ctx.topics.get(TRANS_CHECK_MAX_TIME_TOPIC) is not None
    assert progress(desk) == (3, 2)


async def test_given_up_when_its_files_may_go(make_desk: MakeDesk) -> None:
    desk = make_desk(file_reserved_time=1)
    desk.topic()
    peer = await producer(desk)
    await begin(desk, born_timestamp=desk.now_ms - 3_600_001)
    await desk.check_half_messages()
    assert asked(peer) == []
    assert len(await desk.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1


class TestImmunity:
    SHIELDED = HALF + "\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x01100"

    async def test_nobody_is_asked_before_its_end(self, desk: Desk) -> None:
        peer = await producer(desk)
        await old(desk, self.SHIELDED)
        for _ in range(2):
            await desk.check_half_messages()
            desk.now_ms += 10_000
        assert asked(peer) == []
        copy = (await desk.messages(TRANS_HALF_TOPIC))[-1]
        assert copy.queue_offset == 2
        assert copy.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
        assert "TRANSACTION_CHECK_TIMES" not in copy.properties
        desk.now_ms += 100_000
        await desk.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_its_producer_may_end_it_by_its_first_place(self, desk: Desk) -> None:
        peer = await producer(desk)
        half = await old(desk, self.SHIELDED)
        await desk.check_half_messages()
        assert (await end(desk, half, COMMIT)).code == 0
        desk.now_ms += 200_000
        await desk.check_half_messages()
        assert asked(peer) == []
        assert len(await desk.messages("T", 2)) == 1
        assert progress(desk) == (2, 2)


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_late_answer_ends_the_copy_too(desk: Desk, is_restarted: bool) -> None:
    """The transaction took longer than the timeout: it was asked about, and then committed."""
    peer = await producer(desk)
    half = await old(desk)
    await desk.check_half_messages()
    if is_restarted:
        desk.checks = TransactionChecks(desk.ctx, desk.requests.turn)
    await end(desk, half, COMMIT)
    for _ in range(3):
        desk.now_ms += 60_000
        await desk.check_half_messages()
    assert len(asked(peer)) == 1
    assert len(await desk.messages("T", 2)) == 1


class TestBounds:
    async def test_many_messages_take_several_turns(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transaction_checks, "HALVES_READ_PER_TURN_MAX", 2)
        monkeypatch.setattr(transaction_checks, "HALVES_SEEN_PER_TURN_MAX", 3)
        monkeypatch.setattr(transaction_checks, "OPS_PER_TURN_MAX", 2)
        peer = await producer(desk)
        halves = [await begin(desk, born_timestamp=desk.now_ms) for _ in range(20)]
        for half in halves[::2]:
            await end(desk, half, COMMIT)
        desk.now_ms += TIMEOUT_MS
        await desk.check_half_messages()
        assert len(asked(peer)) == 10
        # The notes of what moved are needed until the copies are settled.
        assert progress(desk) == (20, 0)
        desk.now_ms += 60_000
        for copy in (await desk.messages(TRANS_HALF_TOPIC))[20:]:
            await end(desk, copy, ROLLBACK)
        await desk.check_half_messages()
        assert progress(desk) == (30, 30)

    async def test_properties_without_room_for_a_count(self, desk: Desk) -> None:
        """A half message that cannot be stored again with its count does not stop the others."""
        peer = await producer(desk)
        await old(desk, HALF + "\x02K\x01long")
        put = desk.ctx.store.put

        def narrow(inner: Any) -> PutResult:
            if "TRANSACTION_CHECK_TIMES" in inner.properties and "K" in inner.properties:
                return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED)
            return put(inner)

        desk.ctx.store.put = narrow  # type: ignore[method-assign]
        await old(desk)
        await desk.check_half_messages()
        assert len(await desk.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1
        assert len(asked(peer)) == 1

    async def test_ops_of_rocketmq_5_name_several(self, desk: Desk) -> None:
        peer = await producer(desk)
        halves = [await begin(desk, born_timestamp=desk.now_ms) for _ in range(3)]
        await end(desk, halves[0], COMMIT)
        (op,) = await desk.messages(TRANS_OP_HALF_TOPIC)
        inner = op_message(halves[1], ("127.0.0.1", 1), desk.now_ms)
        inner.body = b"1,2,"
        desk.ctx.store.put(inner)
        inner.body = b"x,,-1,99999999999999999999999,"
        desk.ctx.store.put(inner)
        desk.now_ms += TIMEOUT_MS
        await desk.check_half_messages()
        assert asked(peer) == []
        assert op.body == b"0"
        assert progress(desk) == (3, 3)
