"""The question for the subscriptions and committed offsets of all groups of a cluster."""

import asyncio
import logging
from collections import defaultdict
from typing import Final

from core_broker.client import AdminClient
from core_broker.errors import RequestRefused, TransportError
from core_broker.message.topics import RETRY_PREFIX, is_system_group
from core_broker.remoting.bodies import ConsumerConnection, ConsumeStats
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.queues import master_or_replica
from trace.subscriptions import Filter, Found, QueueOffsets, consumed_until_ms, filter_of

log = logging.getLogger(__name__)

#: Maximum groups of one answer, in the order of their names; further groups stay unknown.
GROUPS_ASKED_MAX: Final = 2_000
#: Maximum concurrent requests.
REQUESTS_MAX: Final = 16
#: Maximum time of the whole answer, seconds.
ANSWER_S: Final = 30.0


def fetch_subscriptions(connection: Connection, asked_ms: int) -> list[Found]:
    """What the cluster says about each topic and group; empty when the cluster does not answer.

    A job goes on without an answer: the last known subscriptions stay valid.
    """
    try:
        return asyncio.run(_fetch(connection, asked_ms))
    except (TransportError, RequestRefused, TimeoutError) as error:
        log.warning("the subscriptions of the groups are not known: %s", error)
        return []


async def _fetch(connection: Connection, asked_ms: int) -> list[Found]:
    gate = asyncio.Semaphore(REQUESTS_MAX)
    async with connection.admin() as admin, asyncio.timeout(ANSWER_S):
        cluster = await admin.cluster_info()
        addrs = [
            master_or_replica(data.broker_addrs) for data in cluster.broker_addr_table.values()
        ]
        names: set[str] = set()
        for addr in addrs:
            names |= (await admin.group_configs(addr)).keys()
        groups = sorted(name for name in names if not is_system_group(name))
        if len(groups) > GROUPS_ASKED_MAX:
            log.warning("%d groups: only %d are asked", len(groups), GROUPS_ASKED_MAX)

        async def ask(group: str) -> list[Found]:
            async with gate:
                stats = [await _stats(admin, addr, group) for addr in addrs]
                connections = [await _connections(admin, addr, group) for addr in addrs]
            return _found(group, stats, connections, asked_ms)

        answers = await asyncio.gather(*map(ask, groups[:GROUPS_ASKED_MAX]))
    return [found for answer in answers for found in answer]


async def _stats(admin: AdminClient, addr: str, group: str) -> ConsumeStats | None:
    """The offsets on one broker; None when the broker does not answer."""
    try:
        return await admin.consume_stats(addr, group)
    except RequestRefused:
        return ConsumeStats()  # no offsets there
    except TransportError:
        return None


async def _connections(admin: AdminClient, addr: str, group: str) -> ConsumerConnection | None:
    try:
        return await admin.consumer_connections(addr, group)
    except (RequestRefused, TransportError):
        return None  # no consumer is connected, or the broker does not answer


def _found(
    group: str,
    stats: list[ConsumeStats | None],
    connections: list[ConsumerConnection | None],
    asked_ms: int,
) -> list[Found]:
    queues: dict[str, list[QueueOffsets]] = defaultdict(list)
    for answer in stats:
        for queue, offsets in answer.offset_table.items() if answer else ():
            queues[queue.topic].append(
                QueueOffsets(offsets.broker_offset, offsets.consumer_offset, offsets.last_timestamp)
            )
    filters: dict[str, Filter] = {}
    for connection in connections:
        for topic, subscription in connection.subscription_table.items() if connection else ():
            told = filter_of(subscription.expression_type, subscription.sub_string)
            is_same = not subscription.class_filter_mode and filters.get(topic, told) == told
            filters[topic] = told if is_same else Filter()
    is_complete = None not in stats
    return [
        Found(
            topic,
            group,
            filters.get(topic),
            consumed_until_ms(queues[topic], asked_ms) if is_complete else None,
        )
        for topic in sorted({*queues, *filters})
        if not topic.startswith(RETRY_PREFIX)
    ]
