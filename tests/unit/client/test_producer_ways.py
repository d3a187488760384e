"""Further send methods: in the background, in order, in batches; and the stop of a producer."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import (
    CompressionType,
    Message,
    MessageQueue,
    Producer,
    ProducerSettings,
    SendResult,
)
from core_broker.client.routes import vip_addr
from core_broker.client.selectors import by_hash
from core_broker.client.sending import split_batch
from core_broker.errors import ClientError, ConnectFailed, GantryError, RequestRefused
from core_broker.message.compression import decompress
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse, stored

SEND, BATCH = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
MESSAGE = Message("T", b"hi")


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T"], {"b": scripted.addr}, queues=4)
        for code in (SEND, BATCH):
            scripted.on(code, stored)
        yield scripted


async def test_submitted_messages_give_tasks(peer: ScriptedPeer) -> None:
    async with Producer("PG", peer.addr) as producer:
        tasks = [producer.submit(Message("T", b"%d" % number)) for number in range(50)]
        results = await asyncio.gather(*tasks)
    assert len({result.msg_id for result in results}) == 50


async def test_a_callback_gets_the_result_or_the_error(peer: ScriptedPeer) -> None:
    outcomes: list[tuple[SendResult | None, Exception | None]] = []

    def on_sent(result: SendResult | None, error: Exception | None) -> None:
        outcomes.append((result, error))

    peer.script(SEND, [lambda _: refuse(13, "no")])
    async with Producer("PG", peer.addr) as producer:
        producer.submit(MESSAGE, on_sent)
        await eventually(lambda: len(outcomes) == 1)
        producer.submit(MESSAGE, on_sent)
        await eventually(lambda: len(outcomes) == 2)
    (none, refused), (result, nothing) = outcomes
    assert none is None
    assert isinstance(refused, RequestRefused)
    assert result is not None
    assert nothing is None


async def test_what_is_on_its_way_is_bounded(peer: ScriptedPeer) -> None:
    peer.on(SEND, lambda _: None)
    settings = ProducerSettings(in_flight_max=3, drain_timeout_s=0.01)
    async with Producer("PG", peer.addr, settings=settings) as producer:
        tasks = [producer.submit(MESSAGE) for _ in range(3)]
        with pytest.raises(ClientError, match="in_flight_max"):
            producer.submit(MESSAGE)
    assert all(task.cancelled() for task in tasks)


async def test_stopping_waits_for_what_is_on_its_way(peer: ScriptedPeer) -> None:
    sends: list[RemotingCommand] = []
    peer.on(SEND, sends.append)
    producer = Producer("PG", peer.addr)
    await producer.start()
    sending = asyncio.create_task(producer.send(MESSAGE))
    submitted = producer.submit(MESSAGE)
    await eventually(lambda: len(sends) == 2)
    stopping = asyncio.create_task(producer.stop())
    await asyncio.sleep(0)
    with pytest.raises(ClientError, match="not running"):
        producer.submit(MESSAGE)
    for request in sends:
        peer.connections[0].answer(request, stored(request))
    await stopping
    assert (await sending).queue_offset == (await submitted).queue_offset == 7


async def test_a_callback_gets_an_error_when_the_producer_stops(peer: ScriptedPeer) -> None:
    outcomes: list[Exception | None] = []
    peer.on(SEND, lambda _: None)
    settings = ProducerSettings(drain_timeout_s=0.01)
    async with Producer("PG", peer.addr, settings=settings) as producer:
        producer.submit(MESSAGE, lambda _, error: outcomes.append(error))
    await eventually(lambda: outcomes)
    assert isinstance(outcomes[0], ClientError)


async def test_messages_of_one_key_go_to_one_queue_and_are_tried_once(peer: ScriptedPeer) -> None:
    async with Producer("PG", peer.addr) as producer:
        first = [await producer.send_ordered(MESSAGE, "order-1") for _ in range(3)]
        assert len({result.queue for result in first}) == 1
        queues = await producer.queues("T")
        assert first[0].queue == by_hash(queues, MESSAGE, "order-1")
        chosen = await producer.send_selected(MESSAGE, lambda them, _, __: them[2], None)
        assert chosen.queue == MessageQueue("T", "b", 2)
        peer.requests.clear()
        peer.on(SEND, lambda _: refuse(1))
        with pytest.raises(RequestRefused):
            await producer.send_ordered(MESSAGE, "order-1")
    assert len(peer.received(SEND)) == 1


async def test_many_messages_go_in_as_many_batches_as_needed(peer: ScriptedPeer) -> None:
    settings = ProducerSettings(message_bytes_max=1000)
    messages = [Message("T", b"x" * 300, keys=f"k{number}") for number in range(10)]
    async with Producer("PG", peer.addr, settings=settings) as producer:
        results = await producer.send_batches(messages)
        assert await producer.send_batches([]) == []
    assert len(results) == len(peer.received(BATCH)) == 5
    assert all(len(request.body) <= 1000 for request in peer.received(BATCH))


def test_splitting_keeps_the_order_and_everything() -> None:
    messages = [Message("T", b"x" * size) for size in (10, 5000, 10, 10)]
    batches = split_batch(messages, 1000)
    assert [[len(it.body) for it in batch] for batch in batches] == [[10], [5000], [10, 10]]


@pytest.mark.parametrize("kind", CompressionType)
async def test_large_bodies_are_packed_as_told(peer: ScriptedPeer, kind: CompressionType) -> None:
    body = b"x" * 10_000
    async with Producer("PG", peer.addr, settings=ProducerSettings(compress_type=kind)) as producer:
        await producer.send(Message("T", body))
    (request,) = peer.received(SEND)
    sys_flag = int(request.ext_fields["f"])
    assert sys_flag == 1 | kind
    assert len(request.body) < 1000
    assert decompress(request.body, sys_flag) == body


@pytest.mark.parametrize(
    "properties", [{"a\x01b": "c"}, {"a": "b\x02KEYS\x01forged"}, {"": "value"}]
)
async def test_properties_that_would_break_others_are_refused(
    peer: ScriptedPeer, properties: dict[str, str]
) -> None:
    async with Producer("PG", peer.addr) as producer:
        with pytest.raises(ClientError, match="property"):
            await producer.send(Message("T", b"hi", properties=properties))
    assert peer.received(SEND) == []


async def test_a_slow_broker_is_avoided_when_that_is_on(peer: ScriptedPeer) -> None:
    async with ScriptedPeer() as other:
        peer.serve_route(["T"], {"a": other.addr, "b": peer.addr})
        other.on(SEND, lambda _: refuse(1))
        settings = ProducerSettings(send_latency_fault_enable=True)
        async with Producer("PG", peer.addr, settings=settings) as producer:
            for _ in range(12):
                assert (await producer.send(MESSAGE)).queue.broker_name == "b"
        assert len(other.received(SEND)) <= 1


async def test_the_vip_channel_is_two_ports_below(peer: ScriptedPeer) -> None:
    assert vip_addr("[::1]:10911") == "[::1]:10909"
    settings = ProducerSettings(vip_channel=True, retry_times=0)
    async with Producer("PG", peer.addr, settings=settings) as producer:
        with pytest.raises(ConnectFailed) as caught:
            await producer.send(MESSAGE)
    assert caught.value.addr == vip_addr(peer.addr)


ROUTES = [
    b"",
    b"\xff\x00",
    b"[]",
    b'{"queueDatas":[]}',
    b'{"brokerDatas":[],"queueDatas":[]}',
    b'{"brokerDatas":[{"brokerName":"b","brokerAddrs":{}}],'
    b'"queueDatas":[{"brokerName":"b","readQueueNums":1,"writeQueueNums":1,"perm":6}]}',
    b'{"brokerDatas":[],"queueDatas":[{"brokerName":"b","readQueueNums":-5,'
    b'"writeQueueNums":-5,"perm":6}]}',
    b'{"brokerDatas":7,"queueDatas":{}}',
    b'{"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":{"0":"no address"}}],'
    b'"queueDatas":[{"brokerName":"b","readQueueNums":1,"writeQueueNums":1,"perm":6}]}',
]


@pytest.mark.parametrize("body", ROUTES)
async def test_a_route_that_leads_nowhere_is_a_typed_error(peer: ScriptedPeer, body: bytes) -> None:
    peer.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, lambda _: ok(body=body))
    async with Producer("PG", peer.addr) as producer:
        with pytest.raises(GantryError):
            await producer.send(MESSAGE)


async def test_a_route_of_a_billion_queues_does_not_fill_the_memory(peer: ScriptedPeer) -> None:
    body = (
        b'{"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":{"0":"%s"}}],'
        b'"queueDatas":[{"brokerName":"b","readQueueNums":2000000000,'
        b'"writeQueueNums":2000000000,"perm":6}]}' % peer.addr.encode()
    )
    peer.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, lambda _: ok(body=body))
    async with Producer("PG", peer.addr) as producer:
        assert len(await producer.queues("T")) == 65_536


@pytest.mark.parametrize(
    "fields", [{}, {"msgId": "x", "queueId": "many", "queueOffset": "7"}, {"queueId": "1" * 40}]
)
async def test_an_answer_that_makes_no_sense_is_a_typed_error(
    peer: ScriptedPeer, fields: dict[str, str]
) -> None:
    peer.on(SEND, lambda _: ok(fields))
    async with Producer("PG", peer.addr) as producer:
        with pytest.raises(GantryError):
            await producer.send(MESSAGE)
