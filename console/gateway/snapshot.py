"""The metrics of everything in a cluster at one time: the question of the history's sampler.

Gantry brokers answer with their inventories. From other brokers, each snapshot requests the metrics
of at most ASKED_MAX topics and ASKED_MAX groups, in turn: `Snapshot.every` tells how many snapshots
cover all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from console.gateway.brokers.listing import NAME_SERVER, BrokerRow, broker_rows
from console.gateway.engine.answers import Partial, merge_failures, now_ms
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import GroupRow, group_rows
from console.gateway.groups.metrics import GroupMetrics, bulk_group_metrics, group_metrics
from console.gateway.inventory import INVENTORY_DEADLINE_MS, client_inventory
from console.gateway.metrics import ask_each
from console.gateway.replicas.listing import replica_sets
from console.gateway.replicas.model import ReplicaSets
from console.gateway.topics.listing import TopicRow, topic_rows
from console.gateway.topics.metrics import TopicMetrics, bulk_topic_metrics, topic_metrics

T = TypeVar("T")
Row = TypeVar("Row", TopicRow, GroupRow)

#: Maximum number of topics, and of groups, whose metrics one snapshot requests by name.
ASKED_MAX = 40
#: Kinds of topics without metrics of their own in a snapshot: those of consumer groups.
KINDS_OF_GROUPS = frozenset({"retry", "dlq"})
#: Maximum age of an inventory, milliseconds: older metrics are of another snapshot's time.
INVENTORY_AGE_MAX_MS = 20_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Metrics by name. Names with metrics of a broker that failed are left out: unknown, not old.

    `dead_letters` is the sum over the cluster; None when unknown. `every` is the number of
    snapshots until each topic and each group was measured: 1 means all in each snapshot.
    """

    brokers: tuple[BrokerRow, ...]
    connections: Mapping[BrokerRef, int]
    topics: Mapping[str, TopicMetrics]
    groups: Mapping[str, GroupMetrics]
    taken_ms: int
    dead_letters: int | None
    every: int
    #: True when `groups` has each consumer group of the cluster.
    has_all_groups: bool
    #: None when unknown.
    replica_sets: ReplicaSets | None = None


@question(fresh_for_ms=1_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def snapshot(session: ClusterSession, turn: int) -> Partial[Snapshot]:
    """The metrics of brokers, topics and groups; `turn` counts the snapshots.

    Raises ClusterUnreachable when no broker answers.
    """
    brokers = await session.ask(broker_rows)
    topic_list = await session.ask(topic_rows)
    group_list = await session.ask(group_rows)
    topics = await session.ask(bulk_topic_metrics)
    groups = await session.ask(bulk_group_metrics)
    clients = await session.ask(client_inventory)
    failures = merge_failures(
        *(answer.failures for answer in (brokers, topic_list, group_list, topics, groups, clients))
    )
    silent = {failure.broker for failure in failures} - {NAME_SERVER}
    taken_ms = topics.value.taken_ms or now_ms()
    is_old = now_ms() - taken_ms > INVENTORY_AGE_MAX_MS
    known_topics = {} if is_old else topics.value.by_name
    known_groups = {} if is_old else groups.value.by_name

    own_topics = [row for row in topic_list.value if row.kind not in KINDS_OF_GROUPS]
    own_groups = [row for row in group_list.value if not row.system]
    asked_topics = [] if is_old else _missing(own_topics, known_topics, silent)
    asked_groups = [] if is_old else _missing(own_groups, known_groups, silent)
    more_topics = await ask_each(session, topic_metrics, _part(asked_topics, turn))
    more_groups = await ask_each(session, group_metrics, _part(asked_groups, turn))
    asked_failures = merge_failures(more_topics.failures, more_groups.failures)
    silent |= {failure.broker for failure in asked_failures} - {NAME_SERVER}
    found_topics = _found(own_topics, {**known_topics, **more_topics.value}, silent)
    found_groups = _found(own_groups, {**known_groups, **more_groups.value}, silent)
    has_all_groups = not silent and len(found_groups) == len(own_groups)
    dlq = [row.name for row in topic_list.value if row.kind == "dlq"]
    return Partial(
        Snapshot(
            brokers=brokers.value,
            connections={
                ref: len(body.clients)
                for ref, body in clients.value.items()
                if ref.name not in silent
            },
            topics=found_topics,
            groups=found_groups,
            taken_ms=taken_ms,
            dead_letters=(
                None
                if silent
                else _dead_letters(dlq, known_topics, found_groups if has_all_groups else None)
            ),
            every=max(1, -(-max(len(asked_topics), len(asked_groups)) // ASKED_MAX)),
            has_all_groups=has_all_groups,
            replica_sets=await _replica_sets(session),
        ),
        merge_failures(failures, asked_failures),
    )


async def _replica_sets(session: ClusterSession) -> ReplicaSets | None:
    """Controllers that fail leave the other metrics known."""
    try:
        return (await session.ask(replica_sets)).value
    except GatewayError:
        return None


def _missing(rows: Iterable[Row], known: Mapping[str, object], silent: set[str]) -> list[str]:
    """Return the names without metrics, on brokers that all answer."""
    return [row.name for row in rows if row.name not in known and silent.isdisjoint(row.brokers)]


def _found(rows: Iterable[Row], known: Mapping[str, T], silent: set[str]) -> dict[str, T]:
    """Return the metrics of the names on brokers that all answer."""
    return {
        row.name: known[row.name]
        for row in rows
        if row.name in known and silent.isdisjoint(row.brokers)
    }


def _part(names: Sequence[str], turn: int) -> Sequence[str]:
    """Return the names of a snapshot; consecutive snapshots cover all names."""
    parts = max(1, -(-len(names) // ASKED_MAX))
    begin = turn % parts * ASKED_MAX
    return names[begin : begin + ASKED_MAX]


def _dead_letters(
    dlq: Sequence[str],
    topics: Mapping[str, TopicMetrics],
    groups: Mapping[str, GroupMetrics] | None,
) -> int | None:
    """Return the number of dead letters of the cluster: of all DLQ topics, or of all groups."""
    if all(name in topics for name in dlq):
        return sum(topics[name].stored for name in dlq)
    counts = [None] if groups is None else [each.dead_letters for each in groups.values()]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
