"""Admin requests to the broker for tests without an event loop: topics, offsets, members."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from core_broker.client.admin import AdminClient
from core_broker.errors import RequestRefused
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import TopicConfig
from tests.support.cluster import Cluster

T = TypeVar("T")

POLL_SECONDS = 0.05


def ask(cluster: Cluster, request: Callable[[AdminClient], Awaitable[T]]) -> T:
    """Run one admin request in a new event loop and return its result."""

    async def once() -> T:
        async with AdminClient(cluster.namesrv_addr, **cluster.client_options) as admin:
            return await request(admin)

    return asyncio.run(once())


def create_topic(cluster: Cluster, topic: str, queues: int = 4) -> str:
    """Create a topic before a client asks for the route; return the topic's name.

    A client that finds no route repeats the request only after a poll interval.
    """
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    ask(cluster, lambda admin: admin.create_topic(cluster.broker_addr, config))
    return topic


def stored(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """Return the offset range of every non-empty queue of a topic."""
    stats = ask(cluster, lambda admin: admin.topic_stats(cluster.broker_addr, topic))
    return {
        queue.queue_id: (offset.min_offset, offset.max_offset)
        for queue, offset in stats.items()
        if offset.max_offset > 0
    }


def stored_count(cluster: Cluster, topic: str) -> int:
    """Return the number of messages of a topic; 0 for an unknown topic."""
    try:
        return sum(high - low for low, high in stored(cluster, topic).values())
    except RequestRefused:
        return 0


def by_key(cluster: Cluster, topic: str, key: str) -> list[MessageExt]:
    """Return the stored messages with a key."""
    return ask(
        cluster,
        lambda admin: admin.query_message(
            cluster.broker_addr, topic, key, 32, 0, int(time.time() * 1000) + 1000
        ),
    )


def members(cluster: Cluster, group: str) -> int:
    """Return the number of online consumers of a group."""
    try:
        ids = ask(cluster, lambda admin: admin.consumer_ids(cluster.broker_addr, group))
    except RequestRefused:
        return 0
    return len(ids)


def wait_for_producer(cluster: Cluster, group: str) -> None:
    """Wait until the broker knows a producer of the group.

    A Java producer sends its first heartbeat one second after its start. If the producer
    has no route to the broker then, the next heartbeat comes 30 s later (heartbeatBrokerInterval).
    """
    eventually(
        lambda: group in ask(cluster, lambda admin: admin.all_producers(cluster.broker_addr)),
        f"a heartbeat of {group}",
        60,
    )


def has_offset(cluster: Cluster, group: str, topic: str) -> bool:
    """Return whether the broker has an offset of a group in a topic."""
    try:
        stats = ask(cluster, lambda admin: admin.consume_stats(cluster.broker_addr, group))
    except RequestRefused:
        return False
    return any(queue.topic == topic for queue in stats.offset_table)


def lag(cluster: Cluster, group: str, topic: str) -> int:
    """Return the lag of a group in a topic, messages beyond the committed offsets.

    The statistics have no queues of a topic before the first commit: all messages are then lag.
    """
    stats = ask(cluster, lambda admin: admin.consume_stats(cluster.broker_addr, group))
    behind = [
        offsets.broker_offset - offsets.consumer_offset
        for queue, offsets in stats.offset_table.items()
        if queue.topic == topic
    ]
    return sum(behind) if behind else stored_count(cluster, topic)


def eventually(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Poll until a condition holds; fail after the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(POLL_SECONDS)
