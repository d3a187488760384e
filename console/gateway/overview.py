"""The overview of a cluster: the question behind front page, API resource and live feed.

Where brokers report no bulk metrics, the overview requests the metrics of SCAN_MAX groups;
`Totals.left_out` counts the groups left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from console.gateway.brokers.listing import BrokerRow, broker_rows
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.errors import ClusterUnreachable
from console.gateway.engine.questions import Question, question
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.listing import GroupRow, group_rows
from console.gateway.groups.metrics import GroupMetrics, bulk_group_metrics, metrics_of_groups
from console.gateway.inventory import INVENTORY_DEADLINE_MS
from console.gateway.metrics import SCAN_MAX, sum_known
from console.gateway.topics.listing import topic_rows
from console.gateway.topics.metrics import bulk_topic_metrics, stored_in_topics
from core_broker.message.topics import DLQ_PREFIX

T = TypeVar("T")

#: Maximum number of groups in the list of the highest lag.
BEHIND_SHOWN = 5
#: Kinds of topics that RocketMQ creates by itself.
NOT_OWN = frozenset({"system", "retry", "dlq"})


@dataclass(frozen=True, slots=True)
class Load:
    """Sums over the masters. A sum skips unknown values; None when all values are unknown.

    `today_begins` is "mixed" for masters with different beginnings, midnight and start.
    """

    in_rate: float | None
    out_rate: float | None
    in_today: int | None
    out_today: int | None
    today_begins: str | None
    in_total: int | None
    out_total: int | None
    stored_bytes: int | None
    disk_ratio: float | None


@dataclass(frozen=True, slots=True)
class Behind:
    """A group behind its topics (`GroupMetrics.is_behind`)."""

    name: str
    numbers: GroupMetrics


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A group with dead letters. `newest_ms` is None when unknown."""

    group: str
    count: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over groups. None means unknown; the sums lack `left_out` groups.

    `behind` has the highest lag first; `unseen_behind` counts the groups behind whose names the
    reader does not see.
    """

    lag: int | None
    behind: tuple[Behind, ...]
    left_out: int
    unseen_behind: int = 0

    @property
    def highest(self) -> tuple[Behind, ...]:
        """The groups with the highest lag."""
        return self.behind[:BEHIND_SHOWN]


@dataclass(frozen=True, slots=True)
class Overview:
    """`unread_topics` have unread write queues (`queue_safety`).

    Names that the reader does not see are left out: `unseen_topics` counts these topics, and
    `unseen_dead_letters` are the numbers of dead letters of these groups.
    """

    load: Load
    brokers: tuple[BrokerRow, ...]
    topic_count: int | None
    own_topic_count: int | None
    group_count: int | None
    unread_topics: tuple[str, ...]
    totals: Totals | None
    dead_letters: tuple[DeadLetters, ...] | None
    unseen_topics: int = 0
    unseen_dead_letters: tuple[int, ...] = ()

    @property
    def unread_topic_count(self) -> int:
        return len(self.unread_topics) + self.unseen_topics

    @property
    def unseen_dead_letter_groups(self) -> int:
        return len(self.unseen_dead_letters)

    @property
    def dead_letter_group_count(self) -> int:
        return len(self.dead_letters or ()) + self.unseen_dead_letter_groups

    @property
    def total_lag(self) -> int | None:
        return self.totals.lag if self.totals is not None else None

    @property
    def up(self) -> tuple[BrokerRow, ...]:
        """The brokers with an answer."""
        return tuple(row for row in self.brokers if not row.down)

    @property
    def down(self) -> tuple[BrokerRow, ...]:
        """The brokers without an answer, also unregistered ones."""
        return tuple(row for row in self.brokers if row.down)

    @property
    def unregistered(self) -> tuple[BrokerRow, ...]:
        """The brokers with an answer and without a registration."""
        return tuple(row for row in self.brokers if row.state == "unregistered")

    @property
    def down_names(self) -> tuple[str, ...]:
        return tuple(row.ref.name for row in self.down)

    @property
    def dead_letter_count(self) -> int | None:
        """The number of all dead letters; None when too many groups need a request each."""
        if self.dead_letters is None:
            return None
        return sum(each.count for each in self.dead_letters) + sum(self.unseen_dead_letters)


@question(fresh_for_ms=1_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def overview(session: ClusterSession) -> Partial[Overview]:
    """Load, brokers, topic and group counts, lag and dead letters; None: no broker answers."""
    brokers = await session.ask(broker_rows)
    topics, topic_failures = await unless_down(session, topic_rows)
    groups, group_failures = await unless_down(session, group_rows)
    totals, lag_failures = await unless_down(session, group_totals)
    letters, letter_failures = await unless_down(session, dead_letter_totals)
    own = None if topics is None else sum(row.kind not in NOT_OWN for row in topics)
    return Partial(
        Overview(
            load=load_of(brokers.value),
            brokers=brokers.value,
            topic_count=None if topics is None else len(topics),
            own_topic_count=own,
            group_count=None if groups is None else sum(not row.system for row in groups),
            unread_topics=tuple(row.name for row in topics or () if row.unread_queues),
            totals=totals,
            dead_letters=letters,
        ),
        merge_failures(
            brokers.failures, topic_failures, group_failures, lag_failures, letter_failures
        ),
    )


async def unless_down(
    session: ClusterSession, question: Question[[], T]
) -> tuple[T | None, tuple[BrokerFailure, ...]]:
    """Return the answer and its failures; None when no broker answers."""
    try:
        answer = await session.ask(question)
    except ClusterUnreachable as trouble:
        return None, trouble.failures
    return answer.value, answer.failures


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def group_totals(session: ClusterSession) -> Partial[Totals]:
    """The lag of all groups, and the groups that are behind."""
    rows = await session.ask(group_rows)
    known = await session.ask(bulk_group_metrics)
    numbers = dict(known.value.by_name)
    missing = [row.name for row in rows.value if row.name not in numbers]
    asked = await session.ask(metrics_of_groups, tuple(missing[:SCAN_MAX]))
    numbers.update(asked.value)
    return Partial(
        Totals(
            lag=sum_known(each.lag for each in numbers.values()),
            behind=furthest_behind(
                rows.value, numbers, lambda name: known.value.measured_ms(name) or now_ms()
            ),
            left_out=max(0, len(missing) - SCAN_MAX),
        ),
        merge_failures(rows.failures, known.failures, asked.failures),
    )


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def dead_letter_totals(session: ClusterSession) -> Partial[tuple[DeadLetters, ...] | None]:
    """The groups with dead letters, highest count first; None when too many need a request each."""
    rows = await session.ask(topic_rows)
    known = await session.ask(bulk_topic_metrics)
    topics = [row.name for row in rows.value if row.kind == "dlq"]
    numbers = {name: known.value.by_name[name] for name in topics if name in known.value.by_name}
    missing = tuple(name for name in topics if name not in numbers)
    if len(missing) > SCAN_MAX:
        return Partial(None, merge_failures(rows.failures, known.failures))
    asked = await session.ask(stored_in_topics, missing)
    numbers.update(asked.value)
    found = [
        DeadLetters(name.removeprefix(DLQ_PREFIX), each.stored, each.last_write_ms)
        for name, each in numbers.items()
        if each.stored
    ]
    found.sort(key=lambda each: (-each.count, each.group))
    return Partial(tuple(found), merge_failures(rows.failures, known.failures, asked.failures))


def load_of(rows: Iterable[BrokerRow]) -> Load:
    """Return the sums over the masters; slaves hold copies of their master's messages.

    The sums contain the last totals of a master that is down, and leave out the last rates.
    """
    masters = [row for row in rows if row.ref.is_master]
    begins = {row.today_begins for row in masters} - {None}
    return Load(
        in_rate=sum_known(row.in_rate for row in masters if not row.down),
        out_rate=sum_known(row.out_rate for row in masters if not row.down),
        in_today=sum_known(row.in_today for row in masters),
        out_today=sum_known(row.out_today for row in masters),
        today_begins="mixed" if len(begins) > 1 else next(iter(begins), None),
        in_total=sum_known(row.in_total for row in masters),
        out_total=sum_known(row.out_total for row in masters),
        stored_bytes=sum_known(row.stored_bytes for row in masters),
        disk_ratio=max(
            (row.disk_ratio for row in masters if row.disk_ratio is not None), default=None
        ),
    )


def furthest_behind(
    rows: Iterable[GroupRow],
    numbers: Mapping[str, GroupMetrics],
    measured_ms: Callable[[str], int],
) -> tuple[Behind, ...]:
    """Return the groups that are behind, highest lag first; lag younger than a commit interval does
    not count."""
    behind = [Behind(row.name, numbers[row.name]) for row in rows if row.name in numbers]
    behind = [each for each in behind if each.numbers.is_behind(measured_ms(each.name))]
    behind.sort(key=lambda each: (-(each.numbers.lag or 0), each.name))
    return tuple(behind)
