"""The producer against a real broker: sent messages are stored unchanged."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_broker.client import AdminClient, Producer, PullStatus, SendStatus
from core_broker.errors import ClientError, RequestRefused
from core_broker.message.model import Message
from core_broker.message.sysflag import COMPRESSED
from core_broker.remoting.bodies import MessageQueue, TopicConfig
from core_broker.remoting.codes import ResponseCode
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.registered import route_of

NewTopic = Callable[..., Awaitable[str]]


@pytest.mark.on_java
async def test_every_kind_of_send_is_stored(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    addr = quick_cluster.broker_addr
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        single = await producer.send(
            Message(topic, b"single", tags="A", keys=["k1", "k2"], properties={"u": "v"})
        )
        packed = await producer.send(Message(topic, b"x" * 6000))
        batch = await producer.send_batch(
            [Message(topic, b"first", keys="b1"), Message(topic, b"second")]
        )
        (queue,) = await producer.queues(topic)
        chosen = await producer.send_to(Message(topic, b"chosen"), queue)
        pair = [Message(topic, b"third"), Message(topic, b"fourth")]
        chosen_batch = await producer.send_batch_to(pair, queue)
        with pytest.raises(ClientError, match="is not a queue of the topic"):
            await producer.send_batch_to(pair, MessageQueue("another", "broker-a", 0))
        await producer.send_oneway(Message(topic, b"oneway"))

    async def all_stored() -> bool:
        return await admin.max_offset(addr, topic, 0) == 8

    await eventually(all_stored)
    assert {single.status, packed.status, batch.status, chosen.status} == {SendStatus.SEND_OK}
    assert [single.queue_offset, packed.queue_offset, batch.queue_offset] == [0, 1, 2]
    assert chosen.queue == chosen_batch.queue == MessageQueue(topic, "broker-a", 0)
    pulled = await admin.pull(addr, topic, 0, 0, 32)
    assert pulled.status is PullStatus.FOUND
    assert [it.decompressed_body() for it in pulled.messages] == [
        b"single",
        b"x" * 6000,
        b"first",
        b"second",
        b"chosen",
        b"third",
        b"fourth",
        b"oneway",
    ]
    first, large = pulled.messages[:2]
    assert (first.msg_id, first.offset_msg_id) == (single.msg_id, single.offset_msg_id)
    assert (first.tags, first.keys, first.properties["u"]) == ("A", ["k1", "k2"], "v")
    assert large.sys_flag & COMPRESSED
    assert len(large.body) < 100
    assert [it.msg_id for it in pulled.messages[2:4]] == batch.msg_id.split(",")
    assert len(batch.offset_msg_id.split(",")) == 2


@pytest.mark.on_java
async def test_the_first_message_creates_its_topic(
    quick_cluster: ClusterAddrs, admin: AdminClient, group: str
) -> None:
    topic = f"made-by-{group}"
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        await producer.send(Message(topic, b"hi"))
        await producer.send(Message(topic, b"hi"))
    route = await eventually(lambda: route_of(admin, topic))
    assert route is not None
    assert [it.write_queue_nums for it in route.queue_datas] == [4]


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
async def test_a_timer_message_is_refused_and_not_stored(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str, name: str
) -> None:
    topic = await new_topic(1)
    timer = Message(topic, b"later", properties={name: "5000"})
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        with pytest.raises(RequestRefused, match=name) as single:
            await producer.send(timer)
        with pytest.raises(RequestRefused, match=name) as batch:
            await producer.send_batch([Message(topic, b"now"), timer])
    assert {single.value.code, batch.value.code} == {ResponseCode.MESSAGE_ILLEGAL}
    assert await admin.max_offset(quick_cluster.broker_addr, topic, 0) == 0


@pytest.mark.on_java
async def test_many_at_once_use_all_queues_and_lose_nothing(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(4)
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        sends = (producer.send(Message(topic, b"%d" % number)) for number in range(400))
        results = await asyncio.gather(*sends)
    assert len({result.msg_id for result in results}) == 400
    stats = await admin.topic_stats(quick_cluster.broker_addr, topic)
    assert [offset.max_offset for offset in stats.values()] == [100] * 4


async def test_a_topic_that_may_not_be_written_to_has_no_queue_to_send_to(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    closed = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1, perm=4)
    await admin.create_topic(quick_cluster.broker_addr, closed)
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        assert await producer.queues(topic) == []
        with pytest.raises(ClientError, match="no writable queue"):
            await producer.send(Message(topic, b"hi"))


async def test_a_restart_of_the_broker_only_delays(cluster: Cluster) -> None:
    async with Producer("restarting", cluster.namesrv_addr) as producer:
        await producer.send(Message("T", b"before"))
        await asyncio.to_thread(cluster.kill_broker)
        await asyncio.to_thread(cluster.restart_broker)
        assert (await producer.send(Message("T", b"after"))).status is SendStatus.SEND_OK
