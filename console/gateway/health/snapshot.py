"""The snapshot of a cluster: everything that the health rules read, with the missing parts named.

Requests per snapshot: with Gantry brokers, up to thirteen per broker process, whatever the number
of topics and groups. Other brokers report one topic or group per request: the snapshot requests
TOPICS_ASKED_MAX topics and GROUPS_ASKED_MAX groups, and `left_out` counts the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.gateway.brokers.listing import (
    BrokerRow,
    NameServer,
    broker_refs,
    broker_rows,
    name_servers,
)
from console.gateway.brokers.settings import ClusterSettings, broker_settings
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import Question, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import GroupRow, group_rows
from console.gateway.groups.metrics import GroupMetrics, bulk_group_metrics, metrics_of_groups
from console.gateway.inventory import INVENTORY_DEADLINE_MS
from console.gateway.replicas.listing import replica_sets
from console.gateway.replicas.model import ReplicaSets
from console.gateway.topics.listing import TopicRow, topic_rows
from console.gateway.topics.metrics import TopicMetrics, bulk_topic_metrics, metrics_of_topics
from core_broker.remoting.bodies import HARuntimeInfo

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Maximum number of topics, and of groups, with requests of their own.
TOPICS_ASKED_MAX = 50
GROUPS_ASKED_MAX = 100
SNAPSHOT_DEADLINE_MS = 2 * INVENTORY_DEADLINE_MS


# Without slots: a frozen generic with slots cannot be made in Python 3.11.
@dataclass(frozen=True)
class Part(Generic[T_co]):
    """A part of the snapshot. `value` is None when the cluster did not answer at all; `failures`
    name the brokers whose share is missing, or is the last known one (`as_of_ms`)."""

    value: T_co | None
    failures: tuple[BrokerFailure, ...] = ()


@dataclass(frozen=True)
class Measured(Generic[T_co]):
    """Metrics by name; `times_ms` are their times, and `left_out` items were not requested."""

    by_name: Mapping[str, T_co]
    times_ms: Mapping[str, int]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime table of a broker process, between `asked_ms` and `answered_ms`, console time."""

    ref: BrokerRef
    table: Mapping[str, str]
    asked_ms: int
    answered_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one time. `replication` has an answer per master, by name of the broker."""

    taken_ms: int
    brokers: Part[tuple[BrokerRow, ...]]
    runtimes: Part[tuple[Runtime, ...]]
    name_servers: Part[tuple[NameServer, ...]]
    settings: Part[ClusterSettings]
    replication: Part[Mapping[str, HARuntimeInfo]]
    replica_sets: Part[ReplicaSets]
    topics: Part[tuple[TopicRow, ...]]
    topic_metrics: Part[Measured[TopicMetrics]]
    groups: Part[tuple[GroupRow, ...]]
    group_metrics: Part[Measured[GroupMetrics]]


@question(fresh_for_ms=1_000, deadline_ms=SNAPSHOT_DEADLINE_MS)
async def health_snapshot(session: ClusterSession) -> Partial[Snapshot]:
    """The cluster now. Failures are in the parts, not in the answer: a rule names only its own."""
    brokers = await _part(session, broker_rows)
    topics, groups = await _part(session, topic_rows), await _part(session, group_rows)
    return Partial(
        Snapshot(
            taken_ms=now_ms(),
            brokers=brokers,
            runtimes=await _part(session, _runtimes),
            name_servers=await _part(session, name_servers),
            settings=await _part(session, broker_settings),
            replication=await _part(session, _replication),
            replica_sets=await _part(session, replica_sets),
            topics=topics,
            topic_metrics=await _part(session, _topic_metrics),
            groups=groups,
            group_metrics=await _part(session, _group_metrics),
        )
    )


async def _part(session: ClusterSession, question: Question[[], T]) -> Part[T]:
    """Return the answer with its failures; an error of the whole question is a failure, too."""
    try:
        answer = await session.ask(question)
    except GatewayError as trouble:
        failure = BrokerFailure(session.cluster, session.namesrv_addr, str(trouble.detail))
        return Part(None, trouble.failures or (failure,))
    return Part(answer.value, answer.failures)


@question(fresh_for_ms=1_000)
async def _runtimes(session: ClusterSession) -> Partial[tuple[Runtime, ...]]:
    """Runtime tables with the times around each request: the clock check needs both."""

    async def ask(ref: BrokerRef) -> Runtime:
        asked_ms = now_ms()
        table = await session.admin.runtime_info(ref.addr)
        return Runtime(ref, table, asked_ms, now_ms())

    found, failures = await session.fan_out(await broker_refs(session), ask, one_must_answer=False)
    return Partial(tuple(found.values()), failures)


@question(fresh_for_ms=1_000)
async def _replication(session: ClusterSession) -> Partial[Mapping[str, HARuntimeInfo]]:
    """The state of replication (907) on the masters that have slaves.

    RocketMQ before 5.0 refuses the request: the failure says so.
    """
    refs = await broker_refs(session)
    with_slaves = {ref.name for ref in refs if not ref.is_master}
    masters = [ref for ref in refs if ref.is_master and ref.name in with_slaves]
    found, failures = await session.fan_out(
        masters, lambda ref: session.admin.ha_status(ref.addr), one_must_answer=False
    )
    return Partial({ref.name: status for ref, status in found.items()}, failures)


@question(fresh_for_ms=1_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def _topic_metrics(session: ClusterSession) -> Partial[Measured[TopicMetrics]]:
    rows = await session.ask(topic_rows)
    bulk = await session.ask(bulk_topic_metrics)
    missing = _missing((row.name for row in rows.value), bulk.value.by_name)
    asked = await session.ask(metrics_of_topics, missing[:TOPICS_ASKED_MAX])
    measured = _measured(
        bulk.value.by_name, bulk.value.taken_ms, asked.value, len(missing) - TOPICS_ASKED_MAX
    )
    return Partial(measured, merge_failures(rows.failures, bulk.failures, asked.failures))


@question(fresh_for_ms=1_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def _group_metrics(session: ClusterSession) -> Partial[Measured[GroupMetrics]]:
    rows = await session.ask(group_rows)
    bulk = await session.ask(bulk_group_metrics)
    own = (row.name for row in rows.value if not row.system)
    missing = _missing(own, bulk.value.by_name)
    asked = await session.ask(metrics_of_groups, missing[:GROUPS_ASKED_MAX])
    measured = _measured(
        bulk.value.by_name, bulk.value.taken_ms, asked.value, len(missing) - GROUPS_ASKED_MAX
    )
    return Partial(measured, merge_failures(rows.failures, bulk.failures, asked.failures))


def _missing(names: Iterable[str], known: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in known)


def _measured(
    bulk: Mapping[str, T], taken_ms: int | None, asked: Mapping[str, T], left_out: int
) -> Measured[T]:
    """Join the metrics of inventories, of `taken_ms`, and those of single requests, of now."""
    at_ms = now_ms()
    times_ms = {**dict.fromkeys(bulk, taken_ms or at_ms), **dict.fromkeys(asked, at_ms)}
    return Measured({**bulk, **asked}, times_ms, max(0, left_out))
