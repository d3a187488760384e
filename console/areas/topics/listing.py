"""The list of topics: its columns and its filter by type, shared by page and API."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.numbered import Numbered
from console.frame.tables import Column, Columns
from console.gateway import Cluster
from console.gateway.topics.listing import TopicRow
from console.gateway.topics.metrics import TopicMetrics, bulk_topic_metrics, metrics_of_topics

#: Every type that a topic can have, in the order of the filter.
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
    """A row with its numbers, as far as they are known."""

    row: TopicRow
    numbers: TopicMetrics | None

    @property
    def name(self) -> str:
        return self.row.name


def _number(get: Callable[[TopicMetrics], Any]) -> Callable[[TopicLine], Any]:
    return lambda line: get(line.numbers) if line.numbers is not None else None


NUMBER_COLUMNS: tuple[Column[TopicLine], ...] = (
    Column(
        "in_rate",
        _("Received /s"),
        _number(lambda numbers: numbers.in_rate),
        numeric=True,
        hint=_("Average of the last minute"),
    ),
    Column(
        "out_rate",
        _("Delivered /s"),
        _number(lambda numbers: numbers.out_rate),
        numeric=True,
        hint=_("To all groups together, average of the last minute"),
    ),
    Column(
        "stored",
        _("Stored"),
        _number(lambda numbers: numbers.stored),
        numeric=True,
        hint=_("Messages that can still be read"),
    ),
    Column("groups", _("Groups"), _number(lambda numbers: numbers.group_count), numeric=True),
    Column(
        "worst_lag",
        _("Worst lag"),
        _number(lambda numbers: numbers.worst_lag),
        numeric=True,
        hint=_("Messages before the group that is furthest behind"),
    ),
    Column("last_write_ms", _("Last message"), _number(lambda numbers: numbers.last_write_ms)),
)
COLUMNS: Columns[TopicLine] = Columns(
    Column("name", _("Topic"), lambda line: line.row.name),
    Column("kind", _("Type"), lambda line: line.row.kind),
    Column("perm", _("Permission"), lambda line: line.row.perm),
    Column("write_queues", _("Write queues"), lambda line: line.row.write_queues, numeric=True),
    Column("read_queues", _("Read queues"), lambda line: line.row.read_queues, numeric=True),
    *NUMBER_COLUMNS,
)
BY_NUMBERS = frozenset(column.name for column in NUMBER_COLUMNS)


@dataclass(frozen=True, slots=True)
class KindChip:
    """One choice of the filter by type, with how many topics it would show."""

    kind: str
    label: Any
    count: int


def chips(rows: Iterable[TopicRow]) -> list[KindChip]:
    """A chip for every type that occurs; their counts add up to all topics."""
    counts: Counter[str] = Counter(row.kind for row in rows)
    return [KindChip(kind, label, counts[kind]) for kind, label in KINDS.items() if counts[kind]]


def of_kind(rows: Iterable[TopicRow], kind: str) -> list[TopicRow]:
    """All rows for a type that does not exist or none."""
    return [row for row in rows if row.kind == kind] if kind in KINDS else list(rows)


def numbered(
    cluster: Cluster, rows: Sequence[TopicRow], ordered_by: str
) -> tuple[Numbered[TopicMetrics], list[TopicLine]]:
    """The rows as lines, with the numbers that are known or that the order needs."""
    numbers = Numbered(
        cluster, rows, bulk_topic_metrics, metrics_of_topics, all_needed=ordered_by in BY_NUMBERS
    )
    return numbers, [TopicLine(row, numbers.of(row.name)) for row in rows]
