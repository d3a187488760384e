"""Looking into the broker from the side of an administrator, without a loop of one's own."""

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

LOOK_SECONDS = 0.05


def ask(cluster: Cluster, question: Callable[[AdminClient], Awaitable[T]]) -> T:
    """Ask one question and return its answer."""

    async def once() -> T:
        async with AdminClient(cluster.namesrv_addr) as admin:
            return await question(admin)

    return asyncio.run(once())


def create_topic(cluster: Cluster, topic: str, queues: int = 4) -> str:
    """Create a topic, so that no client waits for its first look at the route; return its name."""
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    ask(cluster, lambda admin: admin.create_topic(cluster.broker_addr, config))
    return topic


def stored(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """Return the range of offsets of every queue of a topic that has a message."""
    stats = ask(cluster, lambda admin: admin.topic_stats(cluster.broker_addr, topic))
    return {
        queue.queue_id: (offset.min_offset, offset.max_offset)
        for queue, offset in stats.items()
        if offset.max_offset > 0
    }


def stored_count(cluster: Cluster, topic: str) -> int:
    """Return how many messages a topic has; 0 also when it does not exist."""
    try:
        return sum(high - low for low, high in stored(cluster, topic).values())
    except RequestRefused:
        return 0


def by_key(cluster: Cluster, topic: str, key: str) -> list[MessageExt]:
    """Return the stored messages that carry a key."""
    return ask(
        cluster,
        lambda admin: admin.query_message(
            cluster.broker_addr, topic, key, 32, 0, int(time.time() * 1000) + 1000
        ),
    )


def members(cluster: Cluster, group: str) -> int:
    """Return how many consumers of a group are online."""
    try:
        ids = ask(cluster, lambda admin: admin.consumer_ids(cluster.broker_addr, group))
    except RequestRefused:
        return 0
    return len(ids)


def wait_for_producer(cluster: Cluster, group: str) -> None:
    """Wait until the broker knows a producer of the group.

    A Java producer that knew no broker one second after its start is told of 30 s later
    (heartbeatBrokerInterval).
    """
    eventually(
        lambda: group in ask(cluster, lambda admin: admin.all_producers(cluster.broker_addr)),
        f"a heartbeat of {group}",
        60,
    )


def has_offset(cluster: Cluster, group: str, topic: str) -> bool:
    """Whether a group has told the broker how far it is in a topic."""
    try:
        stats = ask(cluster, lambda admin: admin.consume_stats(cluster.broker_addr, group))
    except RequestRefused:
        return False
    return any(queue.topic == topic for queue in stats.offset_table)


def lag(cluster: Cluster, group: str, topic: str) -> int:
    """Return how many messages of a topic a group has not told to have consumed."""
    stats = ask(cluster, lambda admin: admin.consume_stats(cluster.broker_addr, group))
    return sum(
        where.broker_offset - where.consumer_offset
        for queue, where in stats.offset_table.items()
        if queue.topic == topic
    )


def eventually(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Look again and again until a condition holds; fail after the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(LOOK_SECONDS)
