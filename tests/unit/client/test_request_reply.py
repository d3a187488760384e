"""Requests and replies of the producer against a scripted broker."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import Message, MessageExt, Producer
from core_broker.client import request_reply as module
from core_broker.client.request_reply import reply_to
from core_broker.errors import ClientError, ReplyTimeout, RequestRefused
from core_broker.message.compression import compress
from core_broker.message.properties import decode_properties
from core_broker.message.sysflag import COMPRESSED, COMPRESSION_ZLIB
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse
from tests.support.stored_messages import stored as stored_message

SEND, REPLY = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_REPLY_MESSAGE_V2
ANSWER = {"msgId": "7F00000100002A9F0000000000000123", "queueId": "1", "queueOffset": "7"}


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as peer:
        peer.serve_route(["T", "c_REPLY_TOPIC"], {"b": peer.addr})
        for code in (SEND, REPLY):
            peer.on(code, lambda _: ok(ANSWER))
        peer.on(RequestCode.HEART_BEAT, lambda _: ok())
        yield peer


async def sent(broker: ScriptedPeer) -> dict[str, str]:
    """The properties of the sent request."""
    await eventually(lambda: broker.received(SEND))
    return decode_properties(broker.received(SEND)[-1].ext_fields["i"])


async def push(
    broker: ScriptedPeer, correlation_id: str, body: bytes = b"pong", sys_flag: int = 0
) -> RemotingCommand:
    fields = {
        "producerGroup": "CG",
        "topic": "c_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": str(sys_flag),
        "bornTimestamp": "11",
        "flag": "3",
        "bornHost": "/127.0.0.1:5",
        "storeHost": "127.0.0.1:10911",
        "storeTimestamp": "22",
        "properties": f"MSG_TYPE\x01reply\x02CORRELATION_ID\x01{correlation_id}\x02UNIQ_KEY\x01R",
    }
    command = RemotingCommand.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, body)
    return await broker.connections[-1].invoke(command, 5_000)


async def test_the_reply_is_what_the_request_returns(broker: ScriptedPeer) -> None:
    message = Message("T", b"ping", tags="A")
    async with Producer("PG", broker.addr) as producer:
        asking = asyncio.create_task(producer.request(message, timeout_ms=5_000))
        properties = await sent(broker)
        assert properties["REPLY_TO_CLIENT"] == producer.client_id
        assert properties["TTL"] == "5000"
        assert (await push(broker, properties["CORRELATION_ID"])).code == 0
        reply = await asking
        assert len(producer._pending) == 0
    assert (reply.body, reply.flag, reply.msg_id) == (b"pong", 3, "R")
    assert (reply.born_host, reply.born_timestamp) == (("127.0.0.1", 5), 11)
    assert "CORRELATION_ID" not in message.properties
    codes = [request.code for request in broker.requests]
    assert codes.index(RequestCode.HEART_BEAT) < codes.index(SEND)


async def test_replies_find_their_requests(broker: ScriptedPeer) -> None:
    async with Producer("PG", broker.addr) as producer:
        asking = [
            asyncio.create_task(producer.request(Message("T", b"%d" % number), timeout_ms=5_000))
            for number in range(10)
        ]
        await eventually(lambda: len(broker.received(SEND)) == 10)
        for request in reversed(broker.received(SEND)):
            properties = decode_properties(request.ext_fields["i"])
            await push(broker, properties["CORRELATION_ID"], b"re " + request.body)
        replies = await asyncio.gather(*asking)
    assert [each.body for each in replies] == [b"re %d" % number for number in range(10)]


async def test_a_packed_reply_is_unpacked(broker: ScriptedPeer) -> None:
    async with Producer("PG", broker.addr) as producer:
        asking = asyncio.create_task(producer.request(Message("T", b"ping"), timeout_ms=5_000))
        correlation_id = (await sent(broker))["CORRELATION_ID"]
        flags = COMPRESSED | COMPRESSION_ZLIB
        assert (await push(broker, correlation_id, b"no zlib", flags)).code == 1
        packed = compress(b"x" * 9_000, COMPRESSION_ZLIB)
        assert (await push(broker, correlation_id, packed, flags)).code == 0
        assert (await asking).body == b"x" * 9_000


async def test_no_reply_in_time(broker: ScriptedPeer) -> None:
    async with Producer("PG", broker.addr) as producer:
        with pytest.raises(ReplyTimeout) as caught:
            await producer.request(Message("T", b"ping"), timeout_ms=300)
        assert (caught.value.topic, caught.value.timeout_ms) == ("T", 300)
        assert len(producer._pending) == 0
        late = await push(broker, (await sent(broker))["CORRELATION_ID"])
    assert late.code == 0


async def test_a_request_that_is_not_sent_waits_for_nothing(broker: ScriptedPeer) -> None:
    broker.on(SEND, lambda _: refuse(13, "too large"))
    async with Producer("PG", broker.addr) as producer:
        with pytest.raises(RequestRefused):
            await producer.request(Message("T", b"ping"), timeout_ms=60_000)
        assert len(producer._pending) == 0


async def test_stopping_ends_the_waiting(broker: ScriptedPeer) -> None:
    async with Producer("PG", broker.addr) as producer:
        asking = asyncio.create_task(producer.request(Message("T", b"ping"), timeout_ms=60_000))
        await sent(broker)
    with pytest.raises(ClientError, match="stopped"):
        await asking


async def test_too_many_at_a_time(broker: ScriptedPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PENDING_MAX", 0)
    async with Producer("PG", broker.addr) as producer:
        with pytest.raises(ClientError, match="requests are pending"):
            await producer.request(Message("T", b"ping"))


async def test_unreadable_pushes(broker: ScriptedPeer) -> None:
    async with Producer("PG", broker.addr) as producer:
        await producer.send(Message("T", b"x"))
        command = RemotingCommand.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, {})
        assert (await broker.connections[-1].invoke(command, 5_000)).code == 1
        assert (await push(broker, "nobody")).code == 0


def asked_message(**properties: str) -> MessageExt:
    message = stored_message(0, 0, 0)
    message.properties = {
        "CLUSTER": "c",
        "CORRELATION_ID": "c1",
        "REPLY_TO_CLIENT": "me@1",
        "TTL": "3000",
        **properties,
    }
    message.broker_name = "b"
    return message


async def test_replying(broker: ScriptedPeer) -> None:
    async with Producer("CG", broker.addr) as producer:
        result = await producer.reply(asked_message(), b"pong")
    (request,) = broker.received(REPLY)
    assert (request.body, request.ext_fields["b"]) == (b"pong", "c_REPLY_TOPIC")
    properties = decode_properties(request.ext_fields["i"])
    assert properties["MSG_TYPE"] == "reply"
    assert properties["CORRELATION_ID"] == "c1"
    assert properties["REPLY_TO_CLIENT"] == "me@1"
    assert properties["TTL"] == "3000"
    assert result.queue.topic == "c_REPLY_TOPIC"


async def test_a_reply_that_cannot_be_delivered_is_not_sent_again(broker: ScriptedPeer) -> None:
    broker.on(REPLY, lambda _: refuse(1, "push reply message fail, channel of <me@1> not found."))
    async with Producer("CG", broker.addr) as producer:
        with pytest.raises(RequestRefused, match="not found"):
            await producer.reply(asked_message(), b"pong")
    assert len(broker.received(REPLY)) == 1


@pytest.mark.parametrize("name", ["CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"])
def test_only_requests_can_be_replied_to(name: str) -> None:
    message = asked_message()
    del message.properties[name]
    with pytest.raises(ClientError, match=name):
        reply_to(message, b"pong")
