"""Metrics of consumer groups: lag in messages and in time, consume rate, clients, dead letters."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from console.gateway.engine.answers import Partial, merge_failures, now_ms
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_configs
from console.gateway.groups.members import BROADCASTING, GroupClients, clients_of, group_clients
from console.gateway.groups.progress import GroupQueue, group_stats, queue_progress
from console.gateway.inventory import (
    INVENTORY_DEADLINE_MS,
    client_inventory,
    complete_entries,
    group_inventory,
)
from console.gateway.metrics import METRICS_DEADLINE_MS, BulkMetrics, ask_each, sum_known
from console.gateway.topics.listing import topic_configs
from console.gateway.topics.metrics import stored_in
from core_broker.errors import GantryError
from core_broker.message.topics import RETRY_PREFIX, dlq_topic
from core_broker.remoting.bodies.inventory import GroupEntry

METRICS_FRESH_MS = 3_000
#: Interval between the commits of a consumer, ms: RocketMQ's persistConsumerOffsetInterval.
COMMIT_INTERVAL_MS = 5_000
#: Minimum age of the oldest unconsumed message of a group that is behind, ms. Consumers commit
#: after each interval, so the lag of a healthy group is younger; 1 s more for delivery and clocks.
BEHIND_AFTER_MS = COMMIT_INTERVAL_MS + 1_000
#: Maximum number of topics of a group for which the lag in time is requested.
TOPICS_ASKED_MAX = 8


@dataclass(frozen=True, slots=True)
class GroupMetrics:
    """Metrics of a group; None means unknown.

    `lag` counts messages; None also before the first committed offset. `pending_since_ms` is the
    store time of the oldest unconsumed message. `rate` is the average of the last minute, msg/s.
    Members of a `broadcasting` group store their offsets themselves. `unseen_topics` counts the
    topics whose names the reader does not see; `topics` lacks these names.
    """

    lag: int | None
    retry_lag: int
    pending_since_ms: int | None
    rate: float | None
    topics: tuple[str, ...]
    clients: int | None
    dead_letters: int | None
    broadcasting: bool = False
    unseen_topics: int = 0

    @property
    def topic_count(self) -> int:
        """The number of topics, also of topics whose names the reader does not see."""
        return len(self.topics) + self.unseen_topics

    @property
    def consumed(self) -> bool:
        """True after the first committed offset."""
        return self.lag is not None or self.topic_count > 0

    def lag_seconds(self, at_ms: int) -> float | None:
        """Return the age of the oldest unconsumed message, seconds; 0 without lag."""
        if self.lag == 0:
            return 0.0
        if self.pending_since_ms is None:
            return None
        return max(0, at_ms - self.pending_since_ms) / 1000

    def is_behind(self, at_ms: int) -> bool:
        """True for a group whose lag is older than a commit interval, or of unknown age.

        `at_ms` is the time of the metrics, not of the page: the group goes on meanwhile.
        """
        if not self.lag:
            return False
        return self.pending_since_ms is None or at_ms - self.pending_since_ms >= BEHIND_AFTER_MS


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def bulk_group_metrics(session: ClusterSession) -> Partial[BulkMetrics[GroupMetrics]]:
    """The metrics of the groups for which each broker offers an inventory."""
    inventory = await session.ask(group_inventory)
    configs = await session.ask(group_configs)
    # A client connects to several brokers: the sum of the brokers' counts would be too high.
    members = await _members(session) if len(inventory.value) > 1 else {}
    entries = {ref: body.groups for ref, body in inventory.value.items()}

    def merged(source: tuple[Any, Any, Mapping[str, set[str]]]) -> Mapping[str, GroupMetrics]:
        entries, configs, members = source
        parts = complete_entries(entries, configs)
        with_members = {name: (found, members.get(name)) for name, found in parts.items()}
        return session.derived_each("group_numbers", with_members, _merged)

    known = session.derived("group_metrics", (entries, configs.value, members), merged)
    taken_ms = min((body.taken_timestamp for body in inventory.value.values()), default=None)
    return Partial(
        BulkMetrics(known, taken_ms), merge_failures(configs.failures, inventory.failures)
    )


@question(fresh_for_ms=METRICS_FRESH_MS)
async def group_metrics(session: ClusterSession, group: str) -> Partial[GroupMetrics]:
    """The metrics of a group, requested from the brokers of the group."""
    queues = await session.ask(queue_progress, group)
    stats = (await session.ask(group_stats, group)).value
    members, dead, pending = await asyncio.gather(
        _clients(session, group),
        _dead_letters(session, group),
        _pending(session, group, queues.value),
    )
    lags = [queue.lag for queue in queues.value if queue.lag is not None]
    return Partial(
        GroupMetrics(
            lag=sum(lags) if lags else None,
            retry_lag=sum(queue.lag or 0 for queue in queues.value if queue.retry),
            pending_since_ms=pending,
            rate=sum_known(part.consume_tps for part in stats.values()),
            topics=tuple(sorted({queue.topic for queue in queues.value if not queue.retry})),
            clients=None if members is None else len(members.clients),
            dead_letters=dead,
            broadcasting=members is not None and members.broadcasting,
        ),
        queues.failures,
    )


@question(fresh_for_ms=METRICS_FRESH_MS, deadline_ms=METRICS_DEADLINE_MS)
async def metrics_of_groups(
    session: ClusterSession, groups: tuple[str, ...]
) -> Partial[Mapping[str, GroupMetrics]]:
    """The metrics of named groups, requested group by group; deleted groups are left out."""
    return await ask_each(session, group_metrics, groups)


@question(fresh_for_ms=2_000, deadline_ms=METRICS_DEADLINE_MS, costly=True)
async def client_counts(
    session: ClusterSession, groups: tuple[str, ...]
) -> Partial[Mapping[str, int]]:
    """The number of members of several groups, without groups whose question fails."""
    bulk: Mapping[str, GroupMetrics] = {}
    with suppress(GatewayError):
        bulk = (await session.ask(bulk_group_metrics)).value.by_name
    known = {
        name: clients
        for name in groups
        if name in bulk and (clients := bulk[name].clients) is not None
    }
    asked = await session.ask(clients_of, tuple(name for name in groups if name not in known))
    counted = {name: len(each.clients) for name, each in asked.value.items()}
    return Partial(known | counted, asked.failures)


async def _members(session: ClusterSession) -> dict[str, set[str]]:
    """Return the client ids of each group over all brokers."""
    found: dict[str, set[str]] = {}
    for body in (await session.ask(client_inventory)).value.values():
        for client in body.clients:
            for group in client.consumer_groups:
                found.setdefault(group, set()).add(client.client_id)
    return found


async def _clients(session: ClusterSession, group: str) -> GroupClients | None:
    try:
        return (await session.ask(group_clients, group)).value
    except GatewayError:
        return None


async def _dead_letters(session: ClusterSession, group: str) -> int | None:
    """Return the number of stored dead letters; 0 when the group has no DLQ topic."""
    topic = dlq_topic(group)
    configs = await session.ask(topic_configs)
    if not any(topic in table for table in configs.value.values()):
        return None if configs.failures else 0
    try:
        answer = await session.ask(stored_in, topic)
    except GatewayError:
        return None
    return None if answer.partial else answer.value.stored


async def _pending(session: ClusterSession, group: str, queues: Iterable[GroupQueue]) -> int | None:
    """Return the store time of the oldest unconsumed message; None when no broker reports one."""
    behind = sorted({(queue.topic, queue.broker) for queue in queues if queue.lag})
    refs = {ref.name: ref for ref in (await session.ask(group_configs)).value}
    asks = [
        _oldest(session, group, topic, refs[broker])
        for topic, broker in behind[:TOPICS_ASKED_MAX]
        if broker in refs
    ]
    found = await asyncio.gather(*asks)
    return min((stored_ms for stored_ms in found if stored_ms is not None), default=None)


async def _oldest(session: ClusterSession, group: str, topic: str, ref: BrokerRef) -> int | None:
    """Return the store time of the oldest unconsumed message on one broker."""
    try:
        spans = await session.admin.consume_time_span(ref.addr, group, topic)
    except GantryError:
        return None
    delay_ms = max((span.delay_time for span in spans), default=0)
    return now_ms() - delay_ms if delay_ms > 0 else None


def _merged(_group: str, entries: tuple[list[GroupEntry], set[str] | None]) -> GroupMetrics:
    """Add up the inventory entries of a group; `members` are its client ids over all brokers."""
    parts, members = entries
    topics = {name for part in parts for name in part.topics}
    lags = [(name, lag) for part in parts for name, lag in part.topics.items()]
    pending = [part.oldest_pending_timestamp for part in parts]
    return GroupMetrics(
        lag=sum(lag for _name, lag in lags) if lags else None,
        retry_lag=sum(lag for name, lag in lags if name.startswith(RETRY_PREFIX)),
        pending_since_ms=min((each for each in pending if each is not None), default=None),
        rate=sum_known(part.consume_tps for part in parts),
        topics=tuple(sorted(name for name in topics if not name.startswith(RETRY_PREFIX))),
        clients=max(part.clients for part in parts) if members is None else len(members),
        dead_letters=sum(part.dead_letters for part in parts),
        broadcasting=any(part.message_model == BROADCASTING for part in parts),
    )
