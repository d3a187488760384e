"""Questions to the cluster about the queues of a topic, asked again while brokers are away."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from core_broker.client import AdminClient
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.remoting.codes import ResponseCode
from spark_jobs.offsets import QueueBounds

BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 3.0

T = TypeVar("T")


class ReadError(GantryError):
    """A queue cannot be read: its broker stayed away, or asked-for messages are gone."""


class TopicMissingError(ReadError):
    """No broker has the topic (now)."""


async def persistently(ask: Callable[[], Awaitable[T]], timeout_ms: int, what: str) -> T:
    """Ask until there is an answer or `timeout_ms` is over; then raise ReadError.

    A refusal that cannot change (no such topic, wrong request) is raised at once, as it is.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    pause = BACKOFF_FIRST_S
    while True:
        try:
            return await ask()
        except (TransportError, RequestRefused) as error:
            if isinstance(error, RequestRefused) and not error.retriable:
                raise
            if time.monotonic() + pause > deadline:
                raise ReadError(f"Gave up {what} after {timeout_ms} ms: {error}") from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, BACKOFF_MAX_S)


async def queue_bounds(admin: AdminClient, topic: str) -> list[QueueBounds]:
    """First and last offset of every queue of the topic, on all its brokers."""
    try:
        route = await admin.topic_route(topic)
    except RequestRefused as refused:
        if refused.code == ResponseCode.TOPIC_NOT_EXIST:
            raise TopicMissingError(f"No broker has the topic {topic}.") from refused
        raise
    bounds = []
    for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name):
        stats = await admin.topic_stats(lowest_id(broker.broker_addrs), topic)
        bounds += [
            QueueBounds(broker.broker_name, queue.queue_id, offsets.min_offset, offsets.max_offset)
            for queue, offsets in sorted(stats.items(), key=lambda entry: entry[0].queue_id)
        ]
    return bounds


def fetch_bounds(
    namesrv: str, topic: str, *, timeout_ms: int = 5000, retry_timeout_ms: int = 60_000
) -> list[QueueBounds]:
    """`queue_bounds` for code without an event loop, waiting for brokers that are away."""

    async def ask() -> list[QueueBounds]:
        async with AdminClient(namesrv, timeout_ms=timeout_ms) as admin:
            return await persistently(
                lambda: queue_bounds(admin, topic),
                retry_timeout_ms,
                f"asking for the queues of {topic}",
            )

    return asyncio.run(ask())


async def broker_addr(admin: AdminClient, topic: str, broker_name: str) -> str:
    """Where the broker is now: its master, or a replica while the master is away."""
    route = await admin.topic_route(topic)
    for broker in route.broker_datas:
        if broker.broker_name == broker_name:
            return lowest_id(broker.broker_addrs)
    raise TransportError(broker_name, f"No name server knows where broker {broker_name} is.")


def lowest_id(addrs: dict[int, str]) -> str:
    """The master has id 0, replicas have higher ones."""
    return addrs[min(addrs)]
