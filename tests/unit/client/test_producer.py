"""The producer against failing scripted peers: choice of queues, retries, time budget."""

from collections.abc import AsyncIterator

import pytest

from core_broker.client import Producer, ProducerSettings, SendContext, SendStatus
from core_broker.errors import (
    ClientError,
    ConnectFailed,
    ProtocolError,
    RequestRefused,
    RequestTimeout,
    TransportError,
)
from core_broker.message.model import Message
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, decode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse, stored

SEND = RequestCode.SEND_MESSAGE_V2
MESSAGE = Message("T", b"hi")


@pytest.fixture
async def peers() -> AsyncIterator[tuple[ScriptedPeer, ScriptedPeer]]:
    """Two brokers, a and b; peer a is also the name server."""
    async with ScriptedPeer() as a, ScriptedPeer() as b:
        a.serve_route(["T"], {"a": a.addr, "b": b.addr})
        for peer in (a, b):
            peer.on(SEND, stored)
        yield a, b


Peers = tuple[ScriptedPeer, ScriptedPeer]


def refusing(code: int) -> RemotingCommand:
    return refuse(code, "no")


async def test_messages_go_round_the_queues(peers: Peers) -> None:
    async with Producer("PG", peers[0].addr) as producer:
        results = [await producer.send(MESSAGE) for _ in range(8)]
    assert {str(result.queue) for result in results} == {"T@a:0", "T@a:1", "T@b:0", "T@b:1"}
    assert len(peers[0].received(SEND)) == len(peers[1].received(SEND)) == 4
    assert results[0].status is SendStatus.SEND_OK
    assert results[0].queue_offset == 7
    assert len({result.msg_id for result in results}) == 8
    assert len(results[0].msg_id) == 32


@pytest.mark.parametrize("code", [1, 14, 16, 17, 204, 205])
async def test_a_refusal_of_one_broker_is_taken_to_the_other(peers: Peers, code: int) -> None:
    peers[0].on(SEND, lambda _: refusing(code))
    async with Producer("PG", peers[0].addr) as producer:
        for _ in range(4):
            assert (await producer.send(MESSAGE)).queue.broker_name == "b"
    first = peers[0].received(SEND)[0].ext_fields["i"]
    assert first in {request.ext_fields["i"] for request in peers[1].received(SEND)}


@pytest.mark.parametrize("code", [2, 13, 29])
async def test_other_refusals_are_final(peers: Peers, code: int) -> None:
    for peer in peers:
        peer.on(SEND, lambda _: refusing(code))
    async with Producer("PG", peers[0].addr) as producer:
        with pytest.raises(RequestRefused) as caught:
            await producer.send(MESSAGE)
    assert caught.value.code == code
    assert len(peers[0].received(SEND) + peers[1].received(SEND)) == 1


async def test_the_last_error_has_a_note_of_all_attempts(peers: Peers) -> None:
    for peer in peers:
        peer.on(SEND, lambda _: refusing(ResponseCode.SYSTEM_ERROR))
    async with Producer("PG", peers[0].addr) as producer:
        with pytest.raises(RequestRefused) as caught:
            await producer.send(MESSAGE)
    (note,) = caught.value.__notes__
    assert note in {"Tried 3 times, at: a, b, a.", "Tried 3 times, at: b, a, b."}


async def test_silence_uses_up_the_time(peers: Peers) -> None:
    for peer in peers:
        peer.on(SEND, lambda _: None)
    async with Producer("PG", peers[0].addr) as producer:
        await producer.queues(MESSAGE.topic)  # the time is for the send, and not for its route
        with pytest.raises(RequestTimeout):
            await producer.send(MESSAGE, timeout_ms=500)
    assert len(peers[0].received(SEND) + peers[1].received(SEND)) == 1


async def test_a_silent_name_server_uses_up_no_more_than_the_time(peers: Peers) -> None:
    peers[0].on(RequestCode.GET_ROUTEINFO_BY_TOPIC, lambda _: None)
    async with Producer("PG", peers[0].addr) as producer:
        with pytest.raises(RequestTimeout, match="GET_ROUTEINFO_BY_TOPIC"):
            await producer.send(MESSAGE, timeout_ms=50)


async def test_a_dead_broker_is_passed_over(peers: Peers) -> None:
    peers[0].serve_route(["T"], {"a": peers[0].addr, "dead": "127.0.0.1:1"})
    async with Producer("PG", peers[0].addr) as producer:
        for _ in range(4):
            assert (await producer.send(MESSAGE)).queue.broker_name == "a"


async def test_a_flush_that_timed_out_counts_as_stored(peers: Peers) -> None:
    def late(request: RemotingCommand) -> RemotingCommand:
        answer = stored(request)
        answer.code = ResponseCode.FLUSH_DISK_TIMEOUT
        return answer

    for peer in peers:
        peer.on(SEND, late)
    async with Producer("PG", peers[0].addr) as producer:
        assert (await producer.send(MESSAGE)).status is SendStatus.FLUSH_DISK_TIMEOUT
    settings = ProducerSettings(retry_when_not_stored_ok=True)
    async with Producer("PG", peers[0].addr, settings=settings) as producer:
        assert (await producer.send(MESSAGE)).status is SendStatus.FLUSH_DISK_TIMEOUT
    assert len(peers[0].received(SEND) + peers[1].received(SEND)) == 1 + 3


async def test_a_chosen_queue_gets_one_try(peers: Peers) -> None:
    peers[0].on(SEND, lambda _: refusing(ResponseCode.SYSTEM_ERROR))
    async with Producer("PG", peers[0].addr) as producer:
        assert (await producer.send_to(MESSAGE, MessageQueue("T", "b", 1))).queue.queue_id == 1
        with pytest.raises(RequestRefused):
            await producer.send_to(MESSAGE, MessageQueue("T", "a", 1))
        with pytest.raises(ConnectFailed):
            await producer.send_to(MESSAGE, MessageQueue("T", "nowhere", 1))
        with pytest.raises(ClientError):
            await producer.send_to(MESSAGE, MessageQueue("U", "b", 1))


async def test_oneway_does_not_wait(peers: Peers) -> None:
    async with Producer("PG", peers[0].addr) as producer:
        await producer.send_oneway(MESSAGE)
        await eventually(lambda: peers[0].received(SEND) + peers[1].received(SEND))
    (request,) = peers[0].received(SEND) + peers[1].received(SEND)
    assert request.is_oneway


async def test_a_batch_is_one_request(peers: Peers) -> None:
    for peer in peers:
        peer.on(RequestCode.SEND_BATCH_MESSAGE, stored)
    async with Producer("PG", peers[0].addr) as producer:
        result = await producer.send_batch([Message("T", b"1"), Message("T", b"2")])
    assert len(result.msg_id.split(",")) == 2


async def test_an_unknown_topic_goes_where_the_template_is(peers: Peers) -> None:
    peers[0].serve_route(["TBW102"], {"a": peers[0].addr}, queues=8)
    async with Producer("PG", peers[0].addr) as producer:
        results = [await producer.send(Message("NEW", b"hi")) for _ in range(8)]
    assert {result.queue.queue_id for result in results} == {0, 1, 2, 3}
    assert peers[0].received(SEND)[0].ext_fields["d"] == "4"


async def test_no_route_and_no_template_is_a_refusal(peers: Peers) -> None:
    async with Producer("PG", peers[0].addr) as producer:
        with pytest.raises(RequestRefused) as caught:
            await producer.send(Message("NOPE", b"hi"))
    assert caught.value.code == ResponseCode.TOPIC_NOT_EXIST


async def test_no_name_server_is_a_transport_error() -> None:
    async with Producer("PG", "127.0.0.1:1") as producer:
        with pytest.raises(TransportError, match=r"Cannot connect to 127\.0\.0\.1:1"):
            await producer.send(MESSAGE)


async def test_a_refusal_that_blames_the_route_has_it_fetched_again(peers: Peers) -> None:
    peers[0].script(SEND, [lambda _: refusing(ResponseCode.TOPIC_NOT_EXIST)])
    peers[1].script(SEND, [lambda _: refusing(ResponseCode.TOPIC_NOT_EXIST)])
    async with Producer("PG", peers[0].addr) as producer:
        for _ in range(4):
            await producer.send(MESSAGE)
    assert len(peers[0].received(RequestCode.GET_ROUTEINFO_BY_TOPIC)) > 1


async def test_the_producer_sends_heartbeats_and_unregisters(peers: Peers) -> None:
    async with Producer("PG", peers[0].addr) as producer:
        await producer.send(MESSAGE)
        client_id = producer.client_id
        await eventually(lambda: peers[1].received(RequestCode.HEART_BEAT))
    beat = decode_body(HeartbeatData, peers[1].received(RequestCode.HEART_BEAT)[0].body)
    assert beat.client_id == client_id
    assert [it.group_name for it in beat.producer_data_set] == ["PG"]
    (goodbye,) = peers[1].received(RequestCode.UNREGISTER_CLIENT)
    assert goodbye.ext_fields == {"clientID": client_id, "producerGroup": "PG"}


class RecordingHook:
    """A hook recording its calls and raising exceptions."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.contexts: list[SendContext] = []

    async def start(self, namesrv_addr: str, group: str, role: str) -> None:
        self.calls.append(f"start {group} {role}")

    async def stop(self) -> None:
        self.calls.append("stop")

    def before_send(self, context: SendContext) -> None:
        self.calls.append("before")
        raise ValueError("a hook that breaks")

    def after_send(self, context: SendContext) -> None:
        self.calls.append("after")
        self.contexts.append(context)

    def before_consume(self, context: object) -> None: ...
    def end_transaction(self, context: object) -> None: ...
    def after_consume(self, context: object) -> None: ...


async def test_hooks_see_each_try_and_cannot_break_a_send(
    peers: Peers, caplog: pytest.LogCaptureFixture
) -> None:
    peers[0].on(SEND, lambda _: refusing(ResponseCode.SYSTEM_ERROR))
    onlooker = RecordingHook()
    async with Producer("PG", peers[0].addr, hooks=[onlooker]) as producer:
        for _ in range(4):
            await producer.send(MESSAGE)
    failed = [context for context in onlooker.contexts if context.error]
    sent = [context for context in onlooker.contexts if context.result]
    assert len(sent) == 4
    assert failed
    assert {context.broker_addr for context in failed} == {peers[0].addr}
    assert onlooker.calls[0] == "start PG PRODUCE"
    assert onlooker.calls[-1] == "stop"
    assert caplog.text.count("further failures are not logged") == 1


async def test_a_producer_that_is_not_running_raises(peers: Peers) -> None:
    producer = Producer("PG", peers[0].addr)
    with pytest.raises(ClientError, match="start"):
        await producer.send(MESSAGE)
    await producer.start()
    with pytest.raises(ClientError, match="before"):
        await producer.start()
    await producer.stop()
    await producer.stop()
    with pytest.raises(ClientError, match="start"):
        await producer.send_oneway(MESSAGE)
    with pytest.raises(ClientError, match="before"):
        await producer.start()


async def test_a_hook_that_cannot_start_keeps_the_producer_from_starting(peers: Peers) -> None:
    class Broken(RecordingHook):
        async def start(self, namesrv_addr: str, group: str, role: str) -> None:
            raise ClientError("not this time")

    producer = Producer("PG", peers[0].addr, hooks=[Broken()])
    with pytest.raises(ClientError, match="not this time"):
        await producer.start()
    await producer.stop()


async def test_a_producer_dropped_without_stop_warns(peers: Peers) -> None:
    producer = Producer("PG", peers[0].addr)
    await producer.start()
    instance = producer._instance
    producers = [producer]
    del producer
    with pytest.warns(ResourceWarning, match="without stop"):
        producers.clear()
    await instance.stop()


def test_a_group_must_have_a_legal_name() -> None:
    with pytest.raises(ClientError):
        Producer("no blanks", "127.0.0.1:9876")


async def test_answers_without_header_are_a_protocol_error_not_a_crash(peers: Peers) -> None:
    for peer in peers:
        peer.on(SEND, lambda _: ok())
    async with Producer("PG", peers[0].addr) as producer:
        with pytest.raises(ProtocolError):
            await producer.send(MESSAGE)
