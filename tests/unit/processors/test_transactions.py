"""The end of transactions: code 37, and the check of the producer group."""

from typing import Any

import pytest

from core_broker.auth.contracts import Refusal, Request
from core_broker.auth.gate import Gate
from core_broker.message.topics import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import EndTransactionRequestHeader
from core_broker.state.statistics import TOPIC_PUT_NUMS
from tests.support.broker_harness import BrokerHarness
from tests.support.half_messages import COMMIT, HALF, ROLLBACK, UNKNOWN, begin, end, ops
from tests.unit.processors.conftest import MakeBroker


class RefusesT(Gate):
    """A gate for a sender without a permission on T."""

    def check_stored(self, address: str, request: Request, topic: str) -> None:
        if topic == "T":
            raise Refusal(16, f"no permission on {topic}", "no-permission")


@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
async def test_an_end_needs_a_permission_on_the_real_topic(
    broker: BrokerHarness, topic: str, how: int
) -> None:
    half = await begin(broker)
    broker.ctx.gate = RefusesT()
    answer = await end(broker, half, how, topic="another")
    assert (answer.code, answer.remark) == (16, "no permission on T")
    assert await broker.messages("T", 2) == []
    assert await ops(broker) == []


class TestHalfMessages:
    async def test_half_messages_are_invisible(self, broker: BrokerHarness, topic: str) -> None:
        half = await begin(broker)
        assert await broker.messages("T", 2) == []
        assert (half.queue_id, half.sys_flag & 0xC) == (0, 0)
        assert half.properties["REAL_TOPIC"] == "T"
        assert half.properties["REAL_QID"] == "2"
        assert half.properties["WAIT"] == "true"
        assert broker.ctx.topics.get(TRANS_HALF_TOPIC) is not None
        broker.ctx.statistics.fold()
        assert broker.ctx.statistics.totals()[TOPIC_PUT_NUMS][TRANS_HALF_TOPIC] == 1

    async def test_know_their_group_even_if_the_client_does_not_say(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        half = await begin(broker, "TRAN_MSG\x01TRUE")
        assert half.properties["PGROUP"] == "PG"

    async def test_are_not_lost_to_a_delay(self, broker: BrokerHarness, topic: str) -> None:
        half = await begin(broker, HALF + "\x02DELAY\x012")
        assert (await end(broker, half, COMMIT)).code == 0
        assert await broker.messages("T", 2) == []
        (waiting,) = await broker.messages("SCHEDULE_TOPIC_XXXX", 1)
        assert waiting.properties["REAL_TOPIC"] == "T"
        broker.now_ms += 5_000
        broker.delays.deliver_due()
        (message,) = await broker.messages("T", 2)
        assert message.body == b"half"

    async def test_may_be_forbidden(self, make_broker: MakeBroker) -> None:
        broker = make_broker(reject_transaction_message=True)
        answer = await broker.send(broker.topic(), b"half", HALF, sys_flag=4)
        assert (answer.code, answer.remark) == (
            16,
            "the broker[127.0.0.1] sending transaction message is forbidden",
        )
        assert (await broker.send("T", b"plain")).code == 0

    @pytest.mark.parametrize("sys_flag", [4, 12])
    async def test_need_their_property(
        self, broker: BrokerHarness, topic: str, sys_flag: int
    ) -> None:
        """With the flag alone a message would be acknowledged and never delivered."""
        assert (await broker.send(topic, b"x", sys_flag=sys_flag)).code == 13
        assert await broker.messages(topic) == []

    async def test_a_retried_committed_message_is_no_half_message(
        self, broker: BrokerHarness
    ) -> None:
        properties = HALF + "\x02DELAY\x013"
        answer = await broker.send("%RETRY%CG", b"again", properties, reconsume_times=1)
        assert answer.code == 0
        assert await broker.messages(TRANS_HALF_TOPIC) == []
        assert len(await broker.messages("SCHEDULE_TOPIC_XXXX", 2)) == 1

    async def test_no_client_writes_to_their_topics(self, broker: BrokerHarness) -> None:
        for name in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, "TRANS_CHECK_MAX_TIME_TOPIC"):
            answer = await broker.send(name)
            assert (answer.code, answer.remark) == (
                16,
                f"Sending message to topic[{name}] is forbidden.",
            )

    async def test_cleaning_leaves_their_queues(self, broker: BrokerHarness, topic: str) -> None:
        half = await begin(broker)
        await end(broker, half, ROLLBACK)
        assert (await broker.ask(RequestCode.CLEAN_UNUSED_TOPIC)).code == 0
        assert await ops(broker) == [b"0"]
        assert len(await broker.messages(TRANS_HALF_TOPIC)) == 1


class TestEnding:
    async def test_commit_delivers_once_and_writes_an_op_message(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await begin(broker)
        half = await begin(broker, born_timestamp=77, flag=5)
        answer = await end(broker, half, COMMIT)
        assert (answer.code, answer.ext_fields) == (0, {})
        (message,) = await broker.messages("T", 2)
        assert (message.body, message.flag, message.born_timestamp) == (b"half", 5, 77)
        assert message.sys_flag & 0xC == 8
        assert message.prepared_transaction_offset == half.offset_physical
        assert message.properties["TRAN_MSG"] == "true"
        assert message.properties["REAL_TOPIC"] == "T"
        (op,) = await broker.messages(TRANS_OP_HALF_TOPIC)
        assert (op.body, op.tags, op.queue_id) == (b"1", "d", 0)
        assert broker.ctx.statistics.totals()[TOPIC_PUT_NUMS]["T"] == 1

    async def test_rollback_delivers_no_message(self, broker: BrokerHarness, topic: str) -> None:
        half = await begin(broker)
        assert (await end(broker, half, ROLLBACK)).code == 0
        assert await broker.messages("T", 2) == []
        assert await ops(broker) == [b"0"]

    @pytest.mark.parametrize("how", [UNKNOWN, 4, 99, -8])
    async def test_unknown_endings_have_no_effect(
        self, broker: BrokerHarness, topic: str, how: int
    ) -> None:
        await end(broker, await begin(broker), how)
        assert await broker.messages("T", 2) == []
        assert await ops(broker) == []

    async def test_oneway(self, broker: BrokerHarness, topic: str) -> None:
        half = await begin(broker)
        header = EndTransactionRequestHeader(
            producer_group="PG",
            tran_state_table_offset=0,
            commit_log_offset=half.offset_physical,
            commit_or_rollback=COMMIT,
            msg_id="U1",
        )
        request = broker.request(RequestCode.END_TRANSACTION, header)
        request.flag |= 2
        broker.give(request)
        assert [each.body for each in await broker.messages("T", 2)] == [b"half"]

    async def test_not_on_a_slave(self, make_broker: MakeBroker) -> None:
        half = await begin(make_broker())
        slave = make_broker(broker_role="SLAVE", broker_id=1)
        slave.topic()
        assert (await end(slave, half, COMMIT)).code == 11
        assert await ops(slave) == []


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
    async def test_mismatched_endings_have_no_effect(
        self, broker: BrokerHarness, topic: str, changes: dict[str, Any], remark: str, how: int
    ) -> None:
        half = await begin(broker)
        answer = await end(broker, half, how, **changes)
        assert (answer.code, answer.remark) == (1, remark)
        assert await broker.messages("T", 2) == []
        assert await ops(broker) == []

    async def test_a_message_outside_of_the_half_topic(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        """A committed message names its group, and may have the queue offset of a half message."""
        half = await begin(broker)
        await end(broker, half, COMMIT)
        (delivered,) = await broker.messages("T", 2)
        for how in (COMMIT, ROLLBACK):
            answer = await end(broker, delivered, how)
            assert answer.remark == "Find prepared transaction message failed"
        assert len(await broker.messages("T", 2)) == 1
        assert await ops(broker) == [b"0"]

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
    async def test_unreadable_headers(
        self, broker: BrokerHarness, topic: str, fields: dict[str, str]
    ) -> None:
        await begin(broker)
        assert (await broker.ask(RequestCode.END_TRANSACTION, fields)).code == 1
        assert await ops(broker) == []


class TestResuming:
    async def test_a_discarded_message_is_checked_again(self, make_broker: MakeBroker) -> None:
        broker = make_broker(transaction_check_max=1)
        broker.topic()
        await begin(broker, HALF + "\x02TRANSACTION_CHECK_TIMES\x011", born_timestamp=broker.now_ms)
        broker.now_ms += 60_000
        await broker.check_half_messages()
        (given,) = await broker.messages("TRANS_CHECK_MAX_TIME_TOPIC")
        fields = {"topic": "T", "msgId": given.offset_msg_id}
        assert (await broker.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, fields)).code == 0
        half = (await broker.messages(TRANS_HALF_TOPIC))[-1]
        assert half.properties["TRANSACTION_CHECK_TIMES"] == "0"
        assert half.body == b"half"

    @pytest.mark.parametrize("msg_id", ["", "x", "7F00000100002A9F0000000000000000", "F" * 32])
    async def test_only_discarded_messages_can_be_resumed(
        self, broker: BrokerHarness, topic: str, msg_id: str
    ) -> None:
        await broker.send(topic, b"plain")
        answer = await broker.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": msg_id})
        assert answer.code == 1
        assert await broker.messages(TRANS_HALF_TOPIC) == []
