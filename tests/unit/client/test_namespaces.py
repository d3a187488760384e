"""Names with and without a namespace."""

from collections.abc import AsyncIterator

import pytest

from core_broker.client import Message, MessageExt, Producer, PushConsumer
from core_broker.client.namespaces import with_namespace, without_namespace
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, decode_body
from core_broker.remoting.codes import RequestCode
from tests.support.consumer_parts import record
from tests.support.eventually import eventually
from tests.support.one_broker import OneBroker
from tests.support.scripted_peer import stored


@pytest.mark.parametrize(
    ("bare", "full"),
    [
        ("T", "ns%T"),
        ("%RETRY%G", "%RETRY%ns%G"),
        ("%DLQ%G", "%DLQ%ns%G"),
        ("TBW102", "TBW102"),
        ("RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRACE_TOPIC"),
        ("rmq_sys_x", "rmq_sys_x"),
        ("CID_RMQ_SYS_x", "CID_RMQ_SYS_x"),
        ("TOOLS_CONSUMER", "TOOLS_CONSUMER"),
        ("other%T", "ns%other%T"),
    ],
)
def test_there_and_back(bare: str, full: str) -> None:
    assert with_namespace("ns", bare) == full
    assert with_namespace("ns", full) == full
    assert without_namespace("ns", full) == bare
    assert with_namespace("", bare) == without_namespace("", bare) == bare


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["ns%T", "%RETRY%ns%G"], {"b": peer.addr})
        peer.on(RequestCode.SEND_MESSAGE_V2, stored)
        yield peer


async def test_a_producer_adds_it(broker: OneBroker) -> None:
    async with Producer("PG", broker.addr, namespace="ns") as producer:
        assert producer.group == "ns%PG"
        message = Message("T", b"hi")
        result = await producer.send(message)
        await producer.send_to(message, (await producer.queues("T"))[0])
    assert message.topic == "T"
    assert result.queue.topic == "ns%T"
    sent = broker.received(RequestCode.SEND_MESSAGE_V2)
    assert {(it.ext_fields["a"], it.ext_fields["b"]) for it in sent} == {("ns%PG", "ns%T")}


async def test_a_consumer_adds_it_and_shows_messages_without(broker: OneBroker) -> None:
    topics: list[str] = []
    consumer = PushConsumer("G", broker.addr, namespace="ns")
    consumer.subscribe("T")

    @consumer.listener
    async def listen(messages: list[MessageExt]) -> None:
        topics.extend(message.topic for message in messages)

    broker.serve_once(0, 91, record(90, topic="ns%T"))
    async with consumer:
        await eventually(lambda: broker.received(RequestCode.CONSUMER_SEND_MSG_BACK))
        await eventually(lambda: MessageQueue("ns%T", "b", 0) in consumer.queues)
    back = broker.received(RequestCode.CONSUMER_SEND_MSG_BACK)[0].ext_fields
    assert (back["group"], back["originTopic"]) == ("ns%G", "ns%T")
    assert set(topics) == {"T"}
    beat = decode_body(HeartbeatData, broker.received(RequestCode.HEART_BEAT)[0].body)
    (data,) = beat.consumer_data_set
    assert data.group_name == "ns%G"
    assert {it.topic for it in data.subscription_data_set} == {"ns%T", "%RETRY%ns%G"}
