"""Push consumers against a real broker: sharing queues, failures, offset resets, restarts."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from core_broker.client import AdminClient, ConsumerSettings, Producer
from core_broker.errors import RequestRefused
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import ConsumeFromWhere, MessageModel, MessageQueue
from core_broker.remoting.codes import ResponseCode
from tests.client.receiving import ClusterAddrs, Receiver, dead_letter_of
from tests.support.cluster import ROOT, Cluster
from tests.support.eventually import eventually

NewTopic = Callable[..., Awaitable[str]]


async def send(
    cluster: ClusterAddrs, topic: str, bodies: list[bytes], tags: str | None = None
) -> None:
    async with Producer("sender", cluster.namesrv_addr) as producer:
        for body in bodies:
            await producer.send(Message(topic, body, tags=tags))


def numbered(count: int, prefix: bytes = b"") -> list[bytes]:
    return [prefix + b"%d" % number for number in range(count)]


@pytest.mark.on_java
async def test_what_is_sent_is_received_once(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic()
    await send(quick_cluster, topic, numbered(100, b"before "))
    async with Receiver(quick_cluster, group, topic) as receiver:
        await send(quick_cluster, topic, numbered(100, b"after "))
        await eventually(lambda: len(receiver.messages) >= 200)
    assert set(receiver.bodies) == {*numbered(100, b"before "), *numbered(100, b"after ")}
    assert set(receiver.bodies.values()) == {1}
    stats = await admin.consume_stats(quick_cluster.broker_addr, group)
    lags = {it.broker_offset - it.consumer_offset for it in stats.offset_table.values()}
    assert lags == {0}


@pytest.mark.on_java
async def test_only_the_wanted_tags_arrive_and_the_offset_passes_the_others(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    for tag in ("Aa", "BB", "C", None):
        await send(quick_cluster, topic, [(tag or "none").encode()], tag)
    await send(quick_cluster, topic, numbered(20), "BB")
    async with Receiver(quick_cluster, group, topic, "Aa || C") as receiver:
        await eventually(lambda: len(receiver.messages) == 2)
    stats = await admin.consume_stats(quick_cluster.broker_addr, group, topic)
    assert [it.consumer_offset for it in stats.offset_table.values()] == [24]
    assert set(receiver.bodies) == {b"Aa", b"C"}


async def test_bodies_arrive_unpacked(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    await send(quick_cluster, topic, [b"x" * 6000])
    async with Receiver(quick_cluster, group, topic) as receiver:
        await eventually(lambda: receiver.messages)
    assert receiver.messages[0].body == b"x" * 6000


@pytest.mark.on_java
async def test_two_consumers_share_and_one_takes_over_when_the_other_leaves(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(4)

    def share(receiver: Receiver) -> set[int]:
        return {q.queue_id for q in receiver.consumer.queues if q.topic == topic}

    async with Receiver(quick_cluster, group, topic) as first:
        await eventually(lambda: share(first) == {0, 1, 2, 3})
        async with Receiver(quick_cluster, group, topic) as second:
            await eventually(lambda: len(share(first)) == len(share(second)) == 2)
            assert share(first) | share(second) == {0, 1, 2, 3}
            await send(quick_cluster, topic, numbered(40))
            await eventually(lambda: len(first.messages) + len(second.messages) >= 40)
            assert first.messages
            assert second.messages
        await eventually(lambda: share(first) == {0, 1, 2, 3})
    received = first.bodies + second.bodies
    assert received.keys() == set(numbered(40))
    if isinstance(quick_cluster, Cluster):
        # A Java broker stores the offset of a pull and the commit of a leaving member in two thread
        # pools, in any order: the next owner may receive messages a second time.
        assert received.total() == 40


KILLED = """
import asyncio, sys
from core_broker.client import ConsumeStatus, PushConsumer

async def main(namesrv_addr, group, topic):
    consumer = PushConsumer(group, namesrv_addr)
    consumer.subscribe(topic)

    @consumer.listener
    async def listen(messages):
        print("received", flush=True)
        await asyncio.Event().wait()

    async with consumer:
        while len(consumer.queues) < 2:
            await asyncio.sleep(0.02)
        print("joined", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_what_a_killed_consumer_held_comes_to_the_others(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(2)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, quick_cluster.namesrv_addr, group, topic,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(90):
            assert (await process.stdout.readline()).strip() == b"joined"
            await send(quick_cluster, topic, numbered(10))
            assert (await process.stdout.readline()).strip() == b"received"
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        process.stdout._transport.close()  # type: ignore[attr-defined]
    async with Receiver(quick_cluster, group, topic) as survivor:
        await eventually(lambda: set(survivor.bodies) == set(numbered(10)), timeout_s=90)


@pytest.mark.on_java
async def test_a_message_that_always_fails_ends_in_the_dead_letter_topic(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    settings = ConsumerSettings(
        max_reconsume_times=2,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        rebalance_interval_s=1,
    )

    def fails(message: MessageExt) -> bool:
        return message.body == b"bad"

    async with Receiver(quick_cluster, group, topic, fails=fails, settings=settings) as receiver:
        await send(quick_cluster, topic, [b"good", b"bad"])

        letter = await dead_letter_of(quick_cluster, admin, group)
    tries = [message for message in receiver.messages if message.body == b"bad"]
    assert [message.reconsume_times for message in tries] == [0, 1, 2]
    assert {message.topic for message in tries} == {topic}
    assert len({message.msg_id for message in tries}) == 1
    assert receiver.bodies[b"good"] == 1
    assert letter.body == b"bad"
    assert letter.msg_id == tries[0].msg_id


async def test_a_message_that_fails_once_is_consumed_the_second_time(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    async with Receiver(
        quick_cluster, group, topic, fails=lambda message: message.reconsume_times == 0
    ) as receiver:
        await send(quick_cluster, topic, [b"once"])
        await eventually(lambda: len(receiver.messages) == 2, timeout_s=60)
    assert [message.reconsume_times for message in receiver.messages] == [0, 1]


@pytest.mark.on_java
async def test_broadcast_messages_come_to_everybody(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str, tmp_path: Path
) -> None:
    topic = await new_topic(2)
    receivers = [
        Receiver(
            quick_cluster,
            group,
            topic,
            settings=ConsumerSettings(
                model=MessageModel.BROADCASTING,
                consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                local_offsets=tmp_path / name,
            ),
        )
        for name in ("one", "two")
    ]
    async with receivers[0], receivers[1]:
        await send(quick_cluster, topic, numbered(10))
        await eventually(lambda: all(len(it.messages) == 10 for it in receivers))


@pytest.mark.on_java
async def test_where_a_new_group_begins(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    await send(quick_cluster, topic, [b"old"])
    first = ConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    later = ConsumerSettings(
        consume_from=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, consume_timestamp_ms=0
    )
    for settings in (first, later):
        name = f"{group}-{settings.consume_from}"
        async with Receiver(quick_cluster, name, topic, settings=settings) as receiver:
            await eventually(lambda: receiver.bodies == {b"old": 1})


async def test_a_restart_of_the_broker_loses_nothing(cluster: Cluster) -> None:
    async with Receiver(cluster, "surviving", "T") as receiver:
        await send(cluster, "T", numbered(10, b"before "))
        await eventually(lambda: len(receiver.bodies) == 10, timeout_s=60)
        await asyncio.to_thread(cluster.restart_broker)
        await send(cluster, "T", numbered(10, b"after "))
        await eventually(lambda: len(receiver.bodies) == 20, timeout_s=60)


async def test_tools_can_inspect_a_consumer_and_reset_it(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    addr = quick_cluster.broker_addr
    settings = ConsumerSettings(
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, commit_interval_s=0.05
    )
    async with Receiver(quick_cluster, group, topic, settings=settings) as receiver:
        await send(quick_cluster, topic, numbered(3))
        await eventually(lambda: len(receiver.messages) == 3)
        connections = await admin.consumer_connections(addr, group)
        (connection,) = connections.connection_set
        assert (connection.client_id, connection.language) == (
            receiver.consumer.client_id,
            "PYTHON",
        )
        assert await admin.consumer_ids(addr, group) == [connection.client_id]
        info = await admin.consumer_running_info(addr, group, connection.client_id, jstack=True)
        assert MessageQueue(topic, "broker-a", 0) in info.mq_table
        assert info.jstack
        result = await admin.consume_message_directly(
            addr, group, connection.client_id, receiver.messages[0].offset_msg_id
        )
        assert result.consume_result == "CR_SUCCESS"
        assert receiver.bodies[receiver.messages[0].body] == 2

        async def committed() -> bool:
            return await admin.query_consumer_offset(addr, group, topic, 0) == 3

        # A reset needs committed offsets of the group; RocketMQ refuses a reset before a commit.
        await eventually(committed)
        # RocketMQ 5 lists only groups with an offset, and the name of the topic.
        assert group in await admin.groups_of_topic(addr, topic)
        moved = await admin.reset_offset(addr, group, topic, 0)
        assert moved == {MessageQueue(topic, "broker-a", 0): 0}
        # RocketMQ 5 resets by the answer to the next pull; the broker may hold a pull for 15 s.
        await eventually(lambda: len(receiver.messages) == 7, timeout_s=40)
    with pytest.raises(RequestRefused) as caught:
        await admin.consumer_connections(addr, group)
    assert caught.value.code == ResponseCode.CONSUMER_NOT_ONLINE
