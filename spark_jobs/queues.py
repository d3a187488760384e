"""Questions to the cluster about the queues of a topic, asked again while brokers are away."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from core_broker.client import AclRpcHook, AdminClient
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.remoting.codes import ResponseCode
from spark_jobs.offsets import QueueBounds
from trace.timeline import RETRY_TIMES_MAX_DEFAULT

BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 3.0

T = TypeVar("T")


class ReadError(GantryError):
    """A queue cannot be read: its broker stayed away, or asked-for messages are gone."""


class TopicMissingError(ReadError):
    """No broker has the topic (now)."""


async def persistently(
    ask: Callable[[], Awaitable[T]],
    timeout_ms: int,
    what: str,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Ask until there is an answer or `timeout_ms` of `clock` is over; then raise ReadError.

    A refusal that cannot change (no such topic, wrong request) is raised at once, as it is.
    """
    deadline = clock() + timeout_ms / 1000
    pause = BACKOFF_FIRST_S
    while True:
        try:
            return await ask()
        except (TransportError, RequestRefused) as error:
            if isinstance(error, RequestRefused) and not error.retriable:
                raise
            if clock() + pause > deadline:
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
    namesrv: str,
    topic: str,
    *,
    timeout_ms: int = 5000,
    retry_timeout_ms: int = 60_000,
    hooks: Sequence[AclRpcHook] = (),
) -> list[QueueBounds]:
    """`queue_bounds` for code without an event loop, waiting for brokers that are away."""

    async def ask() -> list[QueueBounds]:
        async with AdminClient(namesrv, timeout_ms=timeout_ms, rpc_hooks=hooks) as admin:
            return await persistently(
                lambda: queue_bounds(admin, topic),
                retry_timeout_ms,
                f"asking for the queues of {topic}",
            )

    return asyncio.run(ask())


def fetch_offsets_at(
    namesrv: str,
    topic: str,
    bounds: Sequence[QueueBounds],
    time_ms: int,
    *,
    timeout_ms: int = 5000,
    retry_timeout_ms: int = 60_000,
    hooks: Sequence[AclRpcHook] = (),
) -> dict[str, dict[int, int]]:
    """Of each queue the offset of its first message stored at `time_ms` or later."""

    async def ask() -> dict[str, dict[int, int]]:
        async with AdminClient(namesrv, timeout_ms=timeout_ms, rpc_hooks=hooks) as admin:
            offsets: dict[str, dict[int, int]] = {}
            for queue in bounds:
                offsets.setdefault(queue.broker_name, {})[queue.queue_id] = await persistently(
                    partial(_offset_at, admin, topic, queue, time_ms),
                    retry_timeout_ms,
                    f"looking for {time_ms} in queue {queue.queue_id} of {queue.broker_name}",
                )
            return offsets

    return asyncio.run(ask())


async def _offset_at(admin: AdminClient, topic: str, queue: QueueBounds, time_ms: int) -> int:
    addr = await broker_addr(admin, topic, queue.broker_name)
    found = await admin.search_offset(addr, topic, queue.queue_id, time_ms)
    offset = min(max(found, queue.offset_min), queue.offset_max)
    if offset != queue.offset_max - 1:
        return offset
    # RocketMQ 4.9 answers the last message, however late the time: its own time decides.
    last = await admin.pull(addr, topic, queue.queue_id, offset, 1)
    is_earlier = bool(last.messages) and last.messages[0].store_timestamp < time_ms
    return offset + is_earlier


def fetch_retry_limits(namesrv: str, *, retry_timeout_ms: int = 60_000) -> dict[str, int]:
    """How often the groups of the cluster retry a message before its dead letter, where that is
    not the usual number. A broker that does not tell is passed over."""

    async def ask() -> dict[str, int]:
        limits: dict[str, int] = {}
        async with AdminClient(namesrv) as admin:
            cluster = await persistently(
                admin.cluster_info, retry_timeout_ms, "asking for the brokers"
            )
            for broker in cluster.broker_addr_table.values():
                with suppress(TransportError, RequestRefused):
                    groups = await admin.group_configs(lowest_id(broker.broker_addrs))
                    limits |= {name: group.retry_max_times for name, group in groups.items()}
        return {name: times for name, times in limits.items() if times != RETRY_TIMES_MAX_DEFAULT}

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
