"""Requests to the cluster about the queues of a topic, retried while brokers are unreachable."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from core_broker.client import AdminClient
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.remoting.codes import ResponseCode
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.offsets import QueueBounds
from trace.attempts import RETRY_TIMES_MAX_DEFAULT

BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 3.0

T = TypeVar("T")


class ReadError(GantryError):
    """A queue cannot be read: its broker is unreachable, or requested messages have expired."""


class WriteError(GantryError):
    """A row cannot become a message, or no broker stored the message."""


class TopicMissingError(ReadError):
    """No broker has the topic."""


async def with_retries(
    request: Callable[[], Awaitable[T]],
    timeout_ms: int,
    action: str,
    clock: Callable[[], float] = time.monotonic,
    failure: type[GantryError] = ReadError,
) -> T:
    """Retry `request` until success or until `timeout_ms` of `clock` has passed; then raise
    `failure`.

    A permanent refusal (no such topic, wrong request) is raised at once.
    """
    deadline = clock() + timeout_ms / 1000
    pause = BACKOFF_FIRST_S
    while True:
        try:
            return await request()
        except (TransportError, RequestRefused) as error:
            if isinstance(error, RequestRefused) and not error.retriable:
                raise
            if clock() + pause > deadline:
                raise failure(f"Gave up {action} after {timeout_ms} ms: {error}") from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, BACKOFF_MAX_S)


async def queue_bounds(admin: AdminClient, topic: str) -> list[QueueBounds]:
    """First and next offset of every queue of the topic, on all brokers."""
    try:
        route = await admin.topic_route(topic)
    except RequestRefused as refused:
        if refused.code == ResponseCode.TOPIC_NOT_EXIST:
            raise TopicMissingError(f"No broker has the topic {topic}.") from refused
        raise
    bounds = []
    for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name):
        stats = await admin.topic_stats(master_or_replica(broker.broker_addrs), topic)
        bounds += [
            QueueBounds(broker.broker_name, queue.queue_id, offsets.min_offset, offsets.max_offset)
            for queue, offsets in sorted(stats.items(), key=lambda entry: entry[0].queue_id)
        ]
    return bounds


def fetch_bounds(connection: Connection, topic: str) -> list[QueueBounds]:
    """`queue_bounds` for callers without an event loop; retries while brokers are unreachable."""

    async def request() -> list[QueueBounds]:
        async with connection.admin() as admin:
            return await with_retries(
                lambda: queue_bounds(admin, topic),
                connection.retry_timeout_ms,
                f"requesting the queues of {topic}",
            )

    return asyncio.run(request())


def fetch_offsets_at(
    connection: Connection, topic: str, bounds: Sequence[QueueBounds], time_ms: int
) -> dict[str, dict[int, int]]:
    """For each queue the offset of the first message stored at `time_ms` or later."""

    async def request() -> dict[str, dict[int, int]]:
        async with connection.admin() as admin:
            offsets: dict[str, dict[int, int]] = {}
            for queue in bounds:
                offsets.setdefault(queue.broker_name, {})[queue.queue_id] = await with_retries(
                    partial(_offset_at, admin, topic, queue, time_ms),
                    connection.retry_timeout_ms,
                    f"searching queue {queue.queue_id} of {queue.broker_name} for {time_ms} ms",
                )
            return offsets

    return asyncio.run(request())


async def _offset_at(admin: AdminClient, topic: str, queue: QueueBounds, time_ms: int) -> int:
    addr = await broker_addr(admin, topic, queue.broker_name)
    result = await admin.search_offset(addr, topic, queue.queue_id, time_ms)
    offset = min(max(result, queue.offset_min), queue.offset_max)
    if offset != queue.offset_max - 1:
        return offset
    # RocketMQ 4.9 returns the last message for any later time: compare the message's own timestamp.
    last = await admin.pull(addr, topic, queue.queue_id, offset, 1)
    is_earlier = bool(last.messages) and last.messages[0].store_timestamp < time_ms
    return offset + is_earlier


def fetch_retry_limits(connection: Connection) -> dict[str, int]:
    """Maximum retries of the cluster's groups.

    Of a group with several limits, a limit other than the default counts: brokers create groups
    with the default. Brokers that refuse the request are skipped.
    """

    async def request() -> dict[str, int]:
        limits: dict[str, int] = {}
        async with connection.admin() as admin:
            cluster = await with_retries(
                admin.cluster_info, connection.retry_timeout_ms, "requesting the brokers"
            )
            for broker in cluster.broker_addr_table.values():
                with suppress(TransportError, RequestRefused):
                    groups = await admin.group_configs(master_or_replica(broker.broker_addrs))
                    for name, group in groups.items():
                        if limits.get(name, RETRY_TIMES_MAX_DEFAULT) == RETRY_TIMES_MAX_DEFAULT:
                            limits[name] = group.retry_max_times
        return limits

    return asyncio.run(request())


async def broker_addr(admin: AdminClient, topic: str, broker_name: str) -> str:
    """The current address of the broker: the master, or a replica while the master is down."""
    route = await admin.topic_route(topic)
    for broker in route.broker_datas:
        if broker.broker_name == broker_name:
            return master_or_replica(broker.broker_addrs)
    raise TransportError(broker_name, f"No name server knows where broker {broker_name} is.")


def master_or_replica(addrs: dict[int, str]) -> str:
    """The address with the lowest id: the master has id 0."""
    return addrs[min(addrs)]
