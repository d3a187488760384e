"""Metrics of topics: stored messages, rates, consumer groups, lag, last write."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.inventory import INVENTORY_DEADLINE_MS, complete_entries, topic_inventory
from console.gateway.metrics import METRICS_DEADLINE_MS, BulkMetrics, ask_each, sum_known
from console.gateway.topics.listing import TopicQueue, queues_of_topic, topic_configs
from core_broker.errors import GantryError, RequestRefused
from core_broker.remoting.bodies.inventory import TopicEntry
from core_broker.remoting.codes import ResponseCode

METRICS_FRESH_MS = 3_000
#: Maximum number of groups of a topic whose lag is requested, one request per group and broker.
GROUPS_ASKED_MAX = 10


@dataclass(frozen=True, slots=True)
class TopicMetrics:
    """Metrics of a topic. `lags` maps its groups to their lag, messages; None means unknown.

    `unseen_lags` are the lags of groups whose names the reader does not see.
    Rates are averages of the last minute, msg/s; None before the first count.
    """

    stored: int
    total: int
    last_write_ms: int | None
    in_rate: float | None
    out_rate: float | None = None
    lags: Mapping[str, int | None] = field(default_factory=dict)
    unseen_lags: tuple[int | None, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted(self.lags))

    @property
    def group_count(self) -> int:
        return len(self.lags) + len(self.unseen_lags)

    @property
    def worst_group(self) -> str | None:
        """The group with the highest lag; None also when the reader does not see its name."""
        worst = self.worst_lag
        if worst is None:
            return None
        return min((group for group, lag in self.lags.items() if lag == worst), default=None)

    @property
    def worst_lag(self) -> int | None:
        lags = (*self.lags.values(), *self.unseen_lags)
        return max((lag for lag in lags if lag is not None), default=None)


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def bulk_topic_metrics(session: ClusterSession) -> Partial[BulkMetrics[TopicMetrics]]:
    """The metrics of the topics for which each broker offers an inventory."""
    inventory = await session.ask(topic_inventory)
    configs = await session.ask(topic_configs)
    entries = {ref: body.topics for ref, body in inventory.value.items()}
    known = session.derived(
        "topic_metrics",
        (entries, configs.value),
        lambda source: session.derived_each("topic_numbers", complete_entries(*source), _merged),
    )
    taken_ms = min((body.taken_timestamp for body in inventory.value.values()), default=None)
    return Partial(
        BulkMetrics(known, taken_ms), merge_failures(configs.failures, inventory.failures)
    )


@question(fresh_for_ms=METRICS_FRESH_MS)
async def topic_metrics(session: ClusterSession, topic: str) -> Partial[TopicMetrics]:
    """The metrics of a topic, without the lag of its groups."""
    tables, failures = await queues_of_topic(session, topic)
    rates, rate_failures = await session.fan_out(
        tables,
        lambda ref: _put_rate(session, ref, topic),
        one_must_answer=False,
        keep=("put_rate", topic),
    )
    groups, group_failures = await session.fan_out(
        tables,
        lambda ref: session.admin.groups_of_topic(ref.addr, topic),
        one_must_answer=False,
        keep=("groups_of_topic", topic),
    )
    queues = [queue for table in tables.values() for queue in table]
    # RocketMQ 5 may list the topic itself among its groups.
    names = {group for found in groups.values() for group in found} - {topic}
    return Partial(
        replace(
            _of_queues(queues), in_rate=sum_known(rates.values()), lags=dict.fromkeys(sorted(names))
        ),
        merge_failures(failures, rate_failures, group_failures),
    )


@question(fresh_for_ms=METRICS_FRESH_MS)
async def topic_metrics_with_lags(session: ClusterSession, topic: str) -> Partial[TopicMetrics]:
    """The metrics of a topic, with lag and consume rate of GROUPS_ASKED_MAX groups."""
    answer = await session.ask(topic_metrics, topic)
    configs = (await session.ask(topic_configs)).value
    refs = [ref for ref, table in configs.items() if topic in table]
    asked = answer.value.groups[:GROUPS_ASKED_MAX]
    progress = await asyncio.gather(*(_progress(session, refs, topic, group) for group in asked))
    asked_lags = {group: lag for group, (lag, _rate) in zip(asked, progress, strict=True)}
    rate = sum_known(rate for _lag, rate in progress)
    return Partial(
        replace(answer.value, lags={**answer.value.lags, **asked_lags}, out_rate=rate),
        answer.failures,
    )


@question(fresh_for_ms=METRICS_FRESH_MS, deadline_ms=METRICS_DEADLINE_MS)
async def metrics_of_topics(
    session: ClusterSession, topics: tuple[str, ...]
) -> Partial[Mapping[str, TopicMetrics]]:
    """The metrics of named topics, requested topic by topic; deleted topics are left out."""
    return await ask_each(session, topic_metrics_with_lags, topics)


@question(fresh_for_ms=METRICS_FRESH_MS, deadline_ms=METRICS_DEADLINE_MS)
async def stored_in_topics(
    session: ClusterSession, topics: tuple[str, ...]
) -> Partial[Mapping[str, TopicMetrics]]:
    """The stored messages of named topics, without rates and groups: one request per broker."""
    return await ask_each(session, stored_in, topics)


@question(fresh_for_ms=METRICS_FRESH_MS)
async def stored_in(session: ClusterSession, topic: str) -> Partial[TopicMetrics]:
    """The stored messages of a topic, without rates and groups."""
    tables, failures = await queues_of_topic(session, topic)
    return Partial(_of_queues(queue for table in tables.values() for queue in table), failures)


async def _progress(
    session: ClusterSession, refs: Iterable[BrokerRef], topic: str, group: str
) -> tuple[int | None, float | None]:
    """Return lag and rate of a group in a topic; None unless all brokers answer."""
    try:
        stats = await asyncio.gather(
            *(session.admin.consume_stats(ref.addr, group, topic) for ref in refs)
        )
    except GantryError:
        return None, None
    queues = [queue for part in stats for queue in part.offset_table.values()]
    known = [queue for queue in queues if queue.broker_offset >= 0 and queue.consumer_offset >= 0]
    lag = sum(max(0, queue.broker_offset - queue.consumer_offset) for queue in known)
    return lag if known else None, sum(part.consume_tps for part in stats)


async def _put_rate(session: ClusterSession, ref: BrokerRef, topic: str) -> float | None:
    """Return the produce rate of the last minute, msg/s; None before the first count."""
    try:
        data = await session.admin.broker_stats(ref.addr, "TOPIC_PUT_NUMS", topic)
    except RequestRefused as refusal:
        if refusal.code == ResponseCode.SYSTEM_ERROR:
            return None
        raise
    return data.stats_minute.tps


def _of_queues(queues: Iterable[TopicQueue]) -> TopicMetrics:
    found = list(queues)
    return TopicMetrics(
        stored=sum(queue.stored for queue in found),
        total=sum(queue.offset_max for queue in found),
        last_write_ms=max((queue.last_write_ms or 0 for queue in found), default=0) or None,
        in_rate=None,
    )


def _merged(_topic: str, parts: Sequence[TopicEntry]) -> TopicMetrics:
    """Add up the inventory entries of a topic."""
    lags: dict[str, int | None] = {}
    for part in parts:
        for group, lag in part.groups.items():
            lags[group] = (lags.get(group) or 0) + lag
    return TopicMetrics(
        stored=sum(end - first for part in parts for first, end in part.queues),
        total=sum(end for part in parts for _first, end in part.queues),
        last_write_ms=max((part.last_write_timestamp or 0 for part in parts), default=0) or None,
        in_rate=sum_known(part.put_tps for part in parts),
        out_rate=sum_known(part.get_tps for part in parts),
        lags=lags,
    )
