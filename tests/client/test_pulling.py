"""The pull consumer and the lite pull consumer against a real broker."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_broker.client import (
    AdminClient,
    ConsumeFromWhere,
    LitePullConsumer,
    LitePullSettings,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    PullStatus,
)
from core_broker.errors import ClientError, RequestRefused
from core_broker.message.topics import retry_topic
from core_broker.remoting.codes import ResponseCode
from tests.client.receiving import ClusterAddrs
from tests.support.eventually import eventually

NewTopic = Callable[..., Awaitable[str]]

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
SETTINGS = LitePullSettings(
    consume_from=FIRST, rebalance_interval_s=1, commit_interval_s=0.05, poll_timeout_ms=200
)
MANUAL = LitePullSettings(consume_from=FIRST, auto_commit=False, commit_interval_s=0.05)
MANY_POLLS = 200


async def send(cluster: ClusterAddrs, topic: str, count: int, queue: int = 0) -> list[bytes]:
    bodies = [b"%d" % number for number in range(count)]
    async with Producer("sender", cluster.namesrv_addr) as producer:
        for body in bodies:
            where = MessageQueue(topic, "broker-a", queue)
            await producer.send_to(Message(topic, body, tags=f"T{int(body) % 2}"), where)
    return bodies


async def polled(consumer: LitePullConsumer, count: int) -> list[bytes]:
    """Poll until `count` messages arrived; return the bodies."""
    polled_bodies: list[bytes] = []
    for _ in range(MANY_POLLS):
        polled_bodies += [message.body for message in await consumer.poll()]
        if len(polled_bodies) >= count:
            return polled_bodies
    raise AssertionError(f"only {len(polled_bodies)} of {count}")


@pytest.mark.on_java
async def test_polling_continues_where_the_group_stopped(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    bodies = await send(quick_cluster, topic, 25)
    addr = quick_cluster.namesrv_addr
    async with LitePullConsumer(group, addr, settings=SETTINGS) as consumer:
        consumer.subscribe(topic)
        assert await polled(consumer, 25) == bodies
    again = await send(quick_cluster, topic, 3)
    async with LitePullConsumer(group, addr, settings=SETTINGS) as consumer:
        consumer.subscribe(topic)
        received_bodies = []
        async for message in consumer:
            received_bodies.append(message.body)
            if len(received_bodies) == 3:
                break
    assert received_bodies == again


async def test_after_an_error_what_was_polled_last_comes_again(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    await send(quick_cluster, topic, 3)

    async def fail() -> None:
        async with LitePullConsumer(group, quick_cluster.namesrv_addr, settings=SETTINGS) as it:
            it.subscribe(topic)
            await polled(it, 1)
            raise RuntimeError("not dealt with")

    with pytest.raises(RuntimeError):
        await fail()
    async with LitePullConsumer(group, quick_cluster.namesrv_addr, settings=SETTINGS) as consumer:
        consumer.subscribe(topic)
        assert (await polled(consumer, 3))[0] == b"0"


@pytest.mark.on_java
async def test_without_auto_commit_only_a_commit_counts(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    await send(quick_cluster, topic, 5)
    queue = MessageQueue(topic, "broker-a", 0)
    addr = quick_cluster.namesrv_addr
    async with LitePullConsumer(group, addr, settings=MANUAL) as consumer:
        consumer.subscribe(topic)
        await polled(consumer, 5)
        await consumer.poll(20)
    async with LitePullConsumer(group, addr, settings=MANUAL) as consumer:
        consumer.subscribe(topic)
        assert len(await polled(consumer, 5)) == 5
        await consumer.commit()
        assert await consumer.committed(queue) == 5
        await consumer.commit({queue: 2})
        assert await consumer.committed(queue) == 2
        with pytest.raises(ClientError, match="not assigned"):
            await consumer.commit({MessageQueue(topic, "broker-a", 9): 1})


@pytest.mark.on_java
async def test_assigned_queues_can_be_wound_back_and_forth(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(2)
    bodies = await send(quick_cluster, topic, 4, queue=1)
    queue = MessageQueue(topic, "broker-a", 1)
    consumer = LitePullConsumer(group, quick_cluster.namesrv_addr, settings=SETTINGS)
    consumer.assign([queue])
    with pytest.raises(ClientError, match="assigned"):
        consumer.subscribe(topic)
    async with consumer:
        assert await consumer.fetch_queues(topic) == [MessageQueue(topic, "broker-a", 0), queue]
        assert await polled(consumer, 4) == bodies
        assert consumer.queues == [queue]
        await consumer.seek(queue, 2)
        assert await polled(consumer, 2) == bodies[2:]
        await consumer.seek_to_begin(queue)
        assert await polled(consumer, 4) == bodies
        await consumer.seek_to_time(queue, 0)
        assert await polled(consumer, 4) == bodies
        await consumer.seek_to_end(queue)
        assert await consumer.poll(50) == []
        for wrong in (-1, 5):
            with pytest.raises(ClientError, match="is not in 0 to 4"):
                await consumer.seek(queue, wrong)
        with pytest.raises(ClientError, match="not assigned"):
            await consumer.seek(MessageQueue(topic, "broker-a", 0), 0)


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(2)
    paused, other = (MessageQueue(topic, "broker-a", number) for number in range(2))
    async with LitePullConsumer(group, quick_cluster.namesrv_addr, settings=SETTINGS) as consumer:
        consumer.subscribe(topic)
        consumer.pause([paused])
        await send(quick_cluster, topic, 2, paused.queue_id)
        await send(quick_cluster, topic, 2, other.queue_id)
        for _ in range(2):
            assert {m.queue_id for m in await consumer.poll(1000)} <= {other.queue_id}
        consumer.resume([paused])
        assert len(await polled(consumer, 2)) >= 2


async def test_members_share_the_queues_and_only_wanted_tags_come(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(4)
    addr = quick_cluster.namesrv_addr
    members = [LitePullConsumer(group, addr, settings=SETTINGS) for _ in range(2)]
    for member in members:
        member.subscribe(topic, "T1")
    async with members[0], members[1]:
        await eventually(lambda: [len(it.queues) for it in members] == [2, 2], timeout_s=90)
        for number in range(4):
            await send(quick_cluster, topic, 4, number)
        polled_bodies = await asyncio.gather(*(polled(member, 4) for member in members))
        assert [sorted(part) for part in polled_bodies] == [[b"1", b"1", b"3", b"3"]] * 2


async def test_new_queues_of_a_topic_are_reported(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    queue_counts: list[int] = []
    settings = LitePullSettings(topic_check_interval_s=0.02)
    consumer = LitePullConsumer(group, quick_cluster.namesrv_addr, settings=settings)
    consumer.subscribe(topic)
    consumer.on_queues_changed(topic, lambda _topic, queues: queue_counts.append(len(queues)))
    async with consumer:
        await eventually(lambda: consumer.queues)
        (config,) = [
            it
            for it in (await admin.topic_configs(quick_cluster.broker_addr)).values()
            if it.topic_name == topic
        ]
        config.read_queue_nums = config.write_queue_nums = 3
        await admin.create_topic(quick_cluster.broker_addr, config)

        async def received_bodies() -> bool:
            assert consumer._running is not None
            consumer._running.instance.routes.mark_stale(topic)
            return queue_counts == [3]

        await eventually(received_bodies, timeout_s=90)


@pytest.mark.on_java
async def test_pulling_queue_by_queue(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(2)
    bodies = await send(quick_cluster, topic, 40)
    async with PullConsumer(group, quick_cluster.namesrv_addr) as consumer:
        queue, empty = await consumer.queues(topic)
        assert await consumer.committed(queue) in {None, 0}
        result = await consumer.pull(queue, 0, count=10)
        assert [message.body for message in result.messages] == bodies[:10]
        assert result.next_offset == 10
        tagged = await consumer.pull(queue, 0, count=4, expression="T1")
        assert {message.tags for message in tagged.messages} == {"T1"}
        await consumer.commit(queue, result.next_offset)
        assert await consumer.committed(queue) == 10
        await consumer.commit(queue, 5)
        assert await consumer.committed(queue) == 5
        received_bodies = [message.body async for message in consumer.messages(queue, 5)]
        assert received_bodies == bodies[5:]
        assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 40)
        assert await consumer.offset_for_timestamp(queue, 0) == 0
        nothing = await consumer.pull(empty, 0)
        assert (nothing.status, nothing.messages) == (PullStatus.NO_NEW_MSG, [])
        wrong = await consumer.pull(queue, 99)
        assert (wrong.status, wrong.next_offset) == (PullStatus.OFFSET_ILLEGAL, 40)


async def test_a_blocking_pull_waits_for_the_next_message(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    async with PullConsumer(group, quick_cluster.namesrv_addr) as consumer:
        (queue,) = await consumer.queues(topic)
        waiting = asyncio.create_task(consumer.pull_blocking(queue, 0))
        await send(quick_cluster, topic, 1)
        result = await waiting
        assert [message.body for message in result.messages] == [b"0"]


async def test_what_a_pull_consumer_gives_back_is_on_the_retry_topic(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    await send(quick_cluster, topic, 1)
    async with PullConsumer(group, quick_cluster.namesrv_addr) as consumer:
        (queue,) = await consumer.queues(topic)
        (message,) = (await consumer.pull(queue, 0)).messages
        assert await consumer.send_back(message, delay_level=1)

        async def again() -> bool:
            try:
                (retry, *_) = await consumer.queues(retry_topic(group))
            except RequestRefused as refused:
                # A broker answers before it has registered the new topic.
                if refused.code != ResponseCode.TOPIC_NOT_EXIST:
                    raise
                return False
            return bool((await consumer.pull(retry, 0)).messages)

        await eventually(again, timeout_s=90)
