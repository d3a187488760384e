"""processors/replies.py: delivery of replies to the requester, and into the store."""

from typing import Any

import pytest

from core_broker.processors import context
from core_broker.remoting.bodies import HeartbeatData, ProducerData
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import SendMessageRequestHeader
from core_broker.state.statistics import TOPIC_PUT_NUMS
from tests.support.broker_harness import BrokerHarness, Peer
from tests.support.broker_requests import send_header
from tests.support.eventually import eventually
from tests.support.scripted_majority import LEADER, ScriptedMajority
from tests.unit.processors.conftest import MakeBroker

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
REPLY = "MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01me@1\x02CORRELATION_ID\x01c1\x02TTL\x013000"


async def requester(broker: BrokerHarness, client_id: str = "me@1", group: str = "PG") -> Peer:
    """A producer that acknowledges every command."""
    peer = broker.peer()
    peer.replies = lambda _: RemotingCommand.response()
    beat = HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=group)])
    assert (await broker.ask(RequestCode.HEART_BEAT, body=beat, peer=peer)).code == 0
    return peer


async def reply(broker: BrokerHarness, properties: str = REPLY, **fields: Any) -> RemotingCommand:
    code = RequestCode.SEND_REPLY_MESSAGE_V2
    return await broker.send(REPLY_TOPIC, b"pong", properties, code=code, **fields)


async def test_the_reply_goes_to_the_requester_and_into_the_store(broker: BrokerHarness) -> None:
    peer, _other = await requester(broker), await requester(broker, "other@1")
    answer = await reply(broker, born_timestamp=77, sys_flag=1, flag=2)
    (message,) = await broker.messages(REPLY_TOPIC)
    assert (answer.code, answer.remark) == (0, None)
    assert answer.ext_fields == {
        "msgId": message.offset_msg_id,
        "queueId": "0",
        "queueOffset": "0",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    (pushed,) = peer.told
    assert (pushed.code, pushed.body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"pong")
    assert pushed.ext_fields == {
        "bornHost": broker.client.peer,
        "bornTimestamp": "77",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "flag": "2",
        "producerGroup": "PG",
        "properties": f"PUSH_REPLY_TIME\x01{broker.now_ms}\x02{REPLY}",
        "queueId": "0",
        "reconsumeTimes": "0",
        "storeHost": "127.0.0.1:10911",
        "storeTimestamp": str(broker.now_ms),
        "sysFlag": "1",
        "topic": REPLY_TOPIC,
        "unitMode": "false",
    }
    assert "PUSH_REPLY_TIME" not in message.properties
    broker.ctx.statistics.fold()
    assert broker.ctx.statistics.totals()[TOPIC_PUT_NUMS][REPLY_TOPIC] == 1


async def test_with_long_field_names(broker: BrokerHarness) -> None:
    peer = await requester(broker)
    header = SendMessageRequestHeader(
        producer_group="PG",
        topic=REPLY_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=-1,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties=REPLY,
    )
    assert (await broker.ask(RequestCode.SEND_REPLY_MESSAGE, header, b"pong")).code == 0
    assert len(peer.told) == 1


async def test_need_not_be_stored(make_broker: MakeBroker) -> None:
    broker = make_broker(store_reply_message_enable=False)
    await requester(broker)
    answer = await reply(broker)
    assert answer.code == 0
    assert (answer.ext_fields["msgId"], answer.ext_fields["queueOffset"]) == ("0", "0")
    assert await broker.messages(REPLY_TOPIC) == []
    failed = await reply(broker, "MSG_TYPE\x01reply")
    assert (failed.code, "msgId" in failed.ext_fields) == (1, False)


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        ("MSG_TYPE\x01reply", "reply message properties[REPLY_TO_CLIENT] is null"),
        (
            REPLY.replace("me@1", "gone@1"),
            "push reply message fail, channel of <gone@1> not found.",
        ),
    ],
)
async def test_no_requester_for_the_reply(
    broker: BrokerHarness, properties: str, remark: str
) -> None:
    answer = await reply(broker, properties)
    assert (answer.code, answer.remark) == (1, remark)
    (message,) = await broker.messages(REPLY_TOPIC)
    assert answer.ext_fields["msgId"] == message.offset_msg_id


async def test_a_refusing_or_disconnected_requester(broker: BrokerHarness) -> None:
    peer = await requester(broker)
    peer.replies = lambda _: RemotingCommand.response(1, "unknown")
    assert (await reply(broker)).remark == "push reply message to me@1fail."
    peer.replies = None
    assert (await reply(broker)).remark == "push reply message to me@1fail."
    broker.requests.clients.disconnected(peer)  # type: ignore[arg-type]
    assert "not found" in ((await reply(broker)).remark or "")


async def test_the_latest_connection_of_a_client_counts(broker: BrokerHarness) -> None:
    first = await requester(broker)
    second = await requester(broker)
    broker.requests.clients.disconnected(first)  # type: ignore[arg-type]
    assert (await reply(broker)).code == 0
    assert (len(first.told), len(second.told)) == (0, 1)


async def test_refused_like_any_message(broker: BrokerHarness) -> None:
    await requester(broker)
    code = RequestCode.SEND_REPLY_MESSAGE_V2
    for topic, expected in (("a b", 1), ("SCHEDULE_TOPIC_XXXX", 16), ("x" * 128, 1)):
        assert (await broker.send(topic, b"x", REPLY, code=code)).code == expected
    answer = await broker.send("none", b"x", REPLY, code=code, default_topic="none")
    assert (answer.code, answer.ext_fields["MSG_REGION"]) == (17, "DefaultRegion")
    assert (await reply(broker, queue_id=9)).code == 1


class TestInADLedgerGroup:
    async def asked(self, broker: BrokerHarness, request: RemotingCommand) -> ScriptedMajority:
        """Deliver a reply, and let it wait for the majority."""
        majority = ScriptedMajority(broker)
        await requester(broker)
        assert broker.give(request) is None
        await eventually(lambda: majority.held)
        assert request.opaque not in broker.client.answers
        return majority

    def request(self, broker: BrokerHarness, properties: str = REPLY) -> RemotingCommand:
        header = send_header(REPLY_TOPIC, properties)
        return broker.request(RequestCode.SEND_REPLY_MESSAGE_V2, header, b"pong")

    async def answer(self, broker: BrokerHarness, request: RemotingCommand) -> RemotingCommand:
        await eventually(lambda: request.opaque in broker.client.answers)
        return broker.client.answers[request.opaque]

    @pytest.mark.parametrize("properties", [REPLY, REPLY + "\x02WAIT\x01false"])
    async def test_a_reply_is_answered_when_a_majority_has_it(
        self, make_broker: MakeBroker, properties: str
    ) -> None:
        broker = make_broker(**LEADER)
        request = self.request(broker, properties)
        majority = await self.asked(broker, request)
        assert majority.held[0][0] == broker.ctx.store.max_offset_physical
        majority.answer(ResponseCode.SUCCESS)
        answer = await self.answer(broker, request)
        (message,) = await broker.messages(REPLY_TOPIC)
        assert (answer.code, answer.ext_fields["msgId"]) == (0, message.offset_msg_id)

    @pytest.mark.parametrize(
        ("code", "answered"),
        [(ResponseCode.FLUSH_SLAVE_TIMEOUT, 1), (ResponseCode.SERVICE_NOT_AVAILABLE, 14)],
    )
    async def test_else_it_is_refused_as_a_send(
        self, make_broker: MakeBroker, code: ResponseCode, answered: int
    ) -> None:
        broker = make_broker(**LEADER)
        request = self.request(broker)
        (await self.asked(broker, request)).answer(code)
        answer = await self.answer(broker, request)
        assert (answer.code, "msgId" in answer.ext_fields) == (answered, False)


async def test_too_many_at_a_time(broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "TASKS_MAX", 0)
    await requester(broker)
    assert (await reply(broker)).code == 2
