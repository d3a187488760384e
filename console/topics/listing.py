"""The list of topics: its columns and its filter by type, shared by page and API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.gateway.topics import TopicNumbers, TopicRow
from console.tables import Column, Columns

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

#: Up to so many topics the numbers of all are fetched, so that the list can be sorted by them.
NUMBERS_SORTABLE_MAX = 300


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A row with its numbers, when they were fetched."""

    row: TopicRow
    numbers: TopicNumbers | None

    @property
    def name(self) -> str:
        return self.row.name


COLUMNS: Columns[TopicLine] = Columns(
    Column("name", _("Topic"), lambda line: line.row.name),
    Column("kind", _("Type"), lambda line: line.row.kind),
    Column("perm", _("Permission"), lambda line: line.row.perm),
    Column("write_queues", _("Write queues"), lambda line: line.row.write_queues, numeric=True),
    Column("read_queues", _("Read queues"), lambda line: line.row.read_queues, numeric=True),
)
NUMBER_COLUMNS: tuple[Column[TopicLine], ...] = (
    Column(
        "in_rate",
        _("Received /s"),
        lambda line: line.numbers.in_rate if line.numbers else None,
        numeric=True,
        hint=_("Average of the last minute"),
    ),
    Column(
        "stored",
        _("Stored"),
        lambda line: line.numbers.stored if line.numbers else None,
        numeric=True,
        hint=_("Messages that can still be read"),
    ),
    Column(
        "groups",
        _("Groups"),
        lambda line: len(line.numbers.groups) if line.numbers else None,
        numeric=True,
    ),
    Column(
        "last_write_ms",
        _("Last message"),
        lambda line: line.numbers.last_write_ms if line.numbers else None,
    ),
)
ALL_COLUMNS: Columns[TopicLine] = Columns(*COLUMNS, *NUMBER_COLUMNS)


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


def with_numbers(rows: Iterable[TopicRow], numbers: Mapping[str, TopicNumbers]) -> list[TopicLine]:
    return [TopicLine(row, numbers.get(row.name)) for row in rows]


def columns_for(count: int) -> Columns[TopicLine]:
    """The columns of a list of so many topics; numbers can be sorted by while all are fetched."""
    if count <= NUMBERS_SORTABLE_MAX:
        return ALL_COLUMNS
    return Columns(*COLUMNS, *(_unsortable(column) for column in NUMBER_COLUMNS))


def _unsortable(column: Column[TopicLine]) -> Column[TopicLine]:
    hint = _("Search until 300 topics or fewer are left, then the list can be sorted by this")
    return Column(column.name, column.title, None, column.numeric, hint)
