"""Columns and type filter of the topic list, shared by page, API and export."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.row_metrics import RowMetrics, metric
from console.frame.tables import Column, Columns
from console.gateway import Cluster
from console.gateway.topics.listing import TopicRow
from console.gateway.topics.metrics import TopicMetrics, bulk_topic_metrics, metrics_of_topics

#: Topic types with labels, in filter order.
KINDS: dict[str, Any] = {
    "unspecified": pgettext_lazy("message type", "unspecified"),
    "normal": pgettext_lazy("message type", "normal"),
    "fifo": pgettext_lazy("message type", "ordered (FIFO)"),
    "delay": pgettext_lazy("message type", "delayed"),
    "transaction": pgettext_lazy("message type", "transaction"),
    "retry": pgettext_lazy("message type", "retry"),
    "dlq": pgettext_lazy("message type", "dead letter"),
    "system": pgettext_lazy("message type", "system"),
}


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A row with metrics; None before the metrics are requested."""

    row: TopicRow
    numbers: TopicMetrics | None

    @property
    def name(self) -> str:
        return self.row.name


#: Types of topics that clients do not name themselves; the page shows them on request.
INTERNAL_KINDS = frozenset({"retry", "dlq", "system"})
#: Value of the page's type filter for topics of all types.
ALL = "all"

METRIC_COLUMNS: tuple[Column[TopicLine], ...] = (
    Column(
        "in_rate",
        _("Produce rate"),
        metric(lambda numbers: numbers.in_rate),
        numeric=True,
        hint=_("Messages per second, average of the last minute"),
    ),
    Column(
        "out_rate",
        _("Consume rate"),
        metric(lambda numbers: numbers.out_rate),
        numeric=True,
        hint=_("Messages per second to all groups, average of the last minute"),
    ),
    Column(
        "stored",
        _("Stored"),
        metric(lambda numbers: numbers.stored),
        numeric=True,
        hint=_("Messages in the store, not yet deleted"),
    ),
    Column(
        "groups",
        _("Groups"),
        metric(lambda numbers: numbers.group_count),
        numeric=True,
        hint=_("Consumer groups with an offset in the topic"),
    ),
    Column(
        "worst_lag",
        _("Highest lag"),
        metric(lambda numbers: numbers.worst_lag),
        numeric=True,
        hint=_("Lag of the group with the highest lag, messages"),
    ),
    Column("last_write_ms", _("Last message"), metric(lambda numbers: numbers.last_write_ms)),
)
COLUMNS: Columns[TopicLine] = Columns(
    Column("name", _("Topic"), lambda line: line.row.name),
    Column("labels", _("Labels"), below=True),
    Column("kind", _("Type"), lambda line: line.row.kind),
    Column("perm", _("Permission"), lambda line: line.row.perm),
    Column("write_queues", _("Write queues"), lambda line: line.row.write_queues, numeric=True),
    Column("read_queues", _("Read queues"), lambda line: line.row.read_queues, numeric=True),
    *METRIC_COLUMNS,
)
METRIC_NAMES = frozenset(column.name for column in METRIC_COLUMNS)


@dataclass(frozen=True, slots=True)
class KindChip:
    """A filter chip: topic type and number of topics."""

    kind: str
    label: Any
    count: int


def chips(rows: Iterable[TopicRow]) -> list[KindChip]:
    """A chip for every present type; the counts add up to the number of topics."""
    counts: Counter[str] = Counter(row.kind for row in rows)
    return [KindChip(kind, label, counts[kind]) for kind, label in KINDS.items() if counts[kind]]


def of_kind(rows: Iterable[TopicRow], kind: str) -> list[TopicRow]:
    """The rows of a topic type; all rows for an empty or unknown type."""
    return [row for row in rows if row.kind == kind] if kind in KINDS else list(rows)


def shown(rows: Iterable[TopicRow], kind: str) -> list[TopicRow]:
    """The rows of the page: without a type, the topics that are not internal."""
    if kind in KINDS or kind == ALL:
        return of_kind(rows, kind)
    return [row for row in rows if row.kind not in INTERNAL_KINDS]


def numbered(
    cluster: Cluster, rows: Sequence[TopicRow], ordered_by: str
) -> tuple[RowMetrics[TopicMetrics], list[TopicLine]]:
    """The rows as lines, with the known metrics and the metrics that the sort order needs."""
    numbers = RowMetrics(
        cluster, rows, bulk_topic_metrics, metrics_of_topics, all_needed=ordered_by in METRIC_NAMES
    )
    return numbers, [TopicLine(row, numbers.of(row.name)) for row in rows]
