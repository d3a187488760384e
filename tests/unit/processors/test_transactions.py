"""Half messages and how they end: code 37, and who may say so."""

from typing import Any

import pytest

from core_broker.message.topics import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import EndTransactionRequestHeader
from core_broker.state.statistics import TOPIC_PUT_NUMS
from tests.support.desk import Desk
from tests.support.half_messages import COMMIT, HALF, ROLLBACK, UNKNOWN, begin, end, ops
from tests.unit.processors.conftest import MakeDesk


class TestHalfMessages:
    async def test_wait_where_nobody_sees_them(self, desk: Desk, topic: str) -> None:
        half = await begin(desk)
        assert await desk.messages("T", 2) == []
        assert (half.queue_id, half.sys_flag & 0xC) == (0, 0)
        assert half.properties["REAL_TOPIC"] == "T"
        assert half.properties["REAL_QID"] == "2"
        assert half.properties["WAIT"] == "true"
        assert desk.ctx.topics.get(TRANS_HALF_TOPIC) is not None
        desk.ctx.statistics.fold()
        assert desk.ctx.statistics.totals()[TOPIC_PUT_NUMS][TRANS_HALF_TOPIC] == 1

    async def test_know_their_group_even_if_the_client_does_not_say(
        self, desk: Desk, topic: str
    ) -> None:
        half = await begin(desk, "TRAN_MSG\x01TRUE")
        assert half.properties["PGROUP"] == "PG"

    async def test_are_not_lost_to_a_delay(self, desk: Desk, topic: str) -> None:
        half = await begin(desk, HALF + "\x02DELAY\x012")
        assert (await end(desk, half, COMMIT)).code == 0
        assert await desk.messages("T", 2) == []
        (waiting,) = await desk.messages("SCHEDULE_TOPIC_XXXX", 1)
        assert waiting.properties["REAL_TOPIC"] == "T"
        desk.now_ms += 5_000
        desk.delays.deliver_due()
        (message,) = await desk.messages("T", 2)
        assert message.body == b"half"

    async def test_may_be_forbidden(self, make_desk: MakeDesk) -> None:
        desk = make_desk(reject_transaction_message=True)
        answer = await desk.send(desk.topic(), b"half", HALF, sys_flag=4)
        assert (answer.code, answer.remark) == (
            16,
            "the broker[127.0.0.1] sending transaction message is forbidden",
        )
        assert (await desk.send("T", b"plain")).code == 0

    @pytest.mark.parametrize("sys_flag", [4, 12])
    async def test_need_their_property(self, desk: Desk, topic: str, sys_flag: int) -> None:
        """With the flag alone a message would be acknowledged and never delivered."""
        assert (await desk.send(topic, b"x", sys_flag=sys_flag)).code == 13
        assert await desk.messages(topic) == []

    async def test_a_committed_message_that_failed_is_no_half_message(self, desk: Desk) -> None:
        properties = HALF + "\x02DELAY\x013"
        answer = await desk.send("%RETRY%CG", b"again", properties, reconsume_times=1)
        assert answer.code == 0
        assert await desk.messages(TRANS_HALF_TOPIC) == []
        assert len(await desk.messages("SCHEDULE_TOPIC_XXXX", 2)) == 1

    async def test_no_client_writes_to_their_topics(self, desk: Desk) -> None:
        for name in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, "TRANS_CHECK_MAX_TIME_TOPIC"):
            answer = await desk.send(name)
            assert (answer.code, answer.remark) == (
                16,
                f"Sending message to topic[{name}] is forbidden.",
            )

    async def test_cleaning_leaves_their_queues(self, desk: Desk, topic: str) -> None:
        half = await begin(desk)
        await end(desk, half, ROLLBACK)
        assert (await desk.ask(RequestCode.CLEAN_UNUSED_TOPIC)).code == 0
        assert await ops(desk) == [b"0"]
        assert len(await desk.messages(TRANS_HALF_TOPIC)) == 1


class TestEnding:
    async def test_commit_delivers_once_and_notes_it(self, desk: Desk, topic: str) -> None:
        await begin(desk)
        half = await begin(desk, born_timestamp=77, flag=5)
        answer = await end(desk, half, COMMIT)
        assert (answer.code, answer.ext_fields) == (0, {})
        (message,) = await desk.messages("T", 2)
        assert (message.body, message.flag, message.born_timestamp) == (b"half", 5, 77)
        assert message.sys_flag & 0xC == 8
        assert message.prepared_transaction_offset == half.offset_physical
        assert message.properties["TRAN_MSG"] == "true"
        assert message.properties["REAL_TOPIC"] == "T"
        (op,) = await desk.messages(TRANS_OP_HALF_TOPIC)
        assert (op.body, op.tags, op.queue_id) == (b"1", "d", 0)
        assert desk.ctx.statistics.totals()[TOPIC_PUT_NUMS]["T"] == 1

    async def test_rollback_delivers_nothing(self, desk: Desk, topic: str) -> None:
        half = await begin(desk)
        assert (await end(desk, half, ROLLBACK)).code == 0
        assert await desk.messages("T", 2) == []
        assert await ops(desk) == [b"0"]

    @pytest.mark.parametrize("how", [UNKNOWN, 4, 99, -8])
    async def test_anything_else_changes_nothing(self, desk: Desk, topic: str, how: int) -> None:
        await end(desk, await begin(desk), how)
        assert await desk.messages("T", 2) == []
        assert await ops(desk) == []

    async def test_oneway(self, desk: Desk, topic: str) -> None:
        half = await begin(desk)
        header = EndTransactionRequestHeader(
            producer_group="PG",
            tran_state_table_offset=0,
            commit_log_offset=half.offset_physical,
            commit_or_rollback=COMMIT,
            msg_id="U1",
        )
        request = desk.request(RequestCode.END_TRANSACTION, header)
        request.flag |= 2
        desk.give(request)
        assert [each.body for each in await desk.messages("T", 2)] == [b"half"]

    async def test_not_on_a_slave(self, make_desk: MakeDesk) -> None:
        desk = make_desk(broker_role="SLAVE")
        desk.topic()
        assert (await end(desk, await begin(desk), COMMIT)).code == 11
        assert await ops(desk) == []


class TestForgeries:
    @pytest.mark.parametrize(
        ("changes", "remark"),
        [
            ({"producer_group": "other"}, "The producer group wrong"),
            ({"producer_group": ""}, "The producer group wrong"),
            ({"tran_state_table_offset": 1}, "The transaction state table offset wrong"),
            ({"tran_state_table_offset": -1}, "The transaction state table offset wrong"),
            ({"commit_log_offset": -1}, "Find prepared transaction message failed"),
            ({"commit_log_offset": 2**63 - 1}, "Find prepared transaction message failed"),
            ({"commit_log_offset": -(2**63)}, "Find prepared transaction message failed"),
            ({"commit_log_offset": 1}, "Find prepared transaction message failed"),
        ],
    )
    @pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
    async def test_settle_nothing(
        self, desk: Desk, topic: str, changes: dict[str, Any], remark: str, how: int
    ) -> None:
        half = await begin(desk)
        answer = await end(desk, half, how, **changes)
        assert (answer.code, answer.remark) == (1, remark)
        assert await desk.messages("T", 2) == []
        assert await ops(desk) == []

    async def test_a_message_of_another_topic(self, desk: Desk, topic: str) -> None:
        """One that was committed names its group, and its offset may be that of a half message."""
        half = await begin(desk)
        await end(desk, half, COMMIT)
        (delivered,) = await desk.messages("T", 2)
        for how in (COMMIT, ROLLBACK):
            answer = await end(desk, delivered, how)
            assert answer.remark == "Find prepared transaction message failed"
        assert len(await desk.messages("T", 2)) == 1
        assert await ops(desk) == [b"0"]

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"commitOrRollback": "8"},
            {
                "producerGroup": "PG",
                "msgId": "",
                "commitOrRollback": "8",
                "tranStateTableOffset": "0",
                "commitLogOffset": "99999999999999999999",
            },
        ],
    )
    async def test_unreadable_headers(self, desk: Desk, topic: str, fields: dict[str, str]) -> None:
        await begin(desk)
        assert (await desk.ask(RequestCode.END_TRANSACTION, fields)).code == 1
        assert await ops(desk) == []


class TestResuming:
    async def test_what_was_given_up_is_asked_about_again(self, make_desk: MakeDesk) -> None:
        desk = make_desk(transaction_check_max=1)
        desk.topic()
        await begin(desk, HALF + "\x02TRANSACTION_CHECK_TIMES\x011", born_timestamp=desk.now_ms)
        desk.now_ms += 60_000
        await desk.check_half_messages()
        (given,) = await desk.messages("TRANS_CHECK_MAX_TIME_TOPIC")
        fields = {"topic": "T", "msgId": given.offset_msg_id}
        assert (await desk.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, fields)).code == 0
        half = (await desk.messages(TRANS_HALF_TOPIC))[-1]
        assert half.properties["TRANSACTION_CHECK_TIMES"] == "0"
        assert half.body == b"half"

    @pytest.mark.parametrize("msg_id", ["", "x", "7F00000100002A9F0000000000000000", "F" * 32])
    async def test_nothing_else_becomes_a_half_message(
        self, desk: Desk, topic: str, msg_id: str
    ) -> None:
        await desk.send(topic, b"plain")
        answer = await desk.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": msg_id})
        assert answer.code == 1
        assert await desk.messages(TRANS_HALF_TOPIC) == []
