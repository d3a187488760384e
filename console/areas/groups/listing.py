"""The list of groups: its columns and filters, shared by page and API."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.numbered import Numbered
from console.frame.tables import Column, Columns
from console.gateway import Cluster, now_ms
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics, bulk_group_metrics, metrics_of_groups

#: Stands for "since now" where the list is ordered by how long messages have waited.
NEVER_MS = 2**53


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A row with its numbers, as far as they are known, and when somebody looked."""

    row: GroupRow
    numbers: GroupMetrics | None
    at_ms: int

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def lag_seconds(self) -> float | None:
        return self.numbers.lag_seconds(self.at_ms) if self.numbers is not None else None

    @property
    def lag_ms(self) -> float | None:
        return None if self.lag_seconds is None else self.lag_seconds * 1000


def _number(get: Callable[[GroupMetrics], Any]) -> Callable[[GroupLine], Any]:
    return lambda line: get(line.numbers) if line.numbers is not None else None


def _waiting(numbers: GroupMetrics) -> int | None:
    """In the order of the seconds but, unlike them, the same the next time somebody looks."""
    if numbers.lag == 0:
        return -NEVER_MS
    return None if numbers.pending_since_ms is None else -numbers.pending_since_ms


NUMBER_COLUMNS: tuple[Column[GroupLine], ...] = (
    Column(
        "lag",
        _("Lag"),
        _number(lambda numbers: numbers.lag),
        numeric=True,
        hint=_("Messages that are stored but not yet consumed, retries among them"),
    ),
    Column(
        "lag_seconds",
        _("Lag in time"),
        _number(_waiting),
        numeric=True,
        hint=_("How long the oldest message that is not yet consumed has been stored"),
    ),
    Column("retry_lag", _("Of these retries"), _number(lambda numbers: numbers.retry_lag), True),
    Column(
        "rate",
        _("Consumes /s"),
        _number(lambda numbers: numbers.rate),
        numeric=True,
        hint=_("Average of the last minute"),
    ),
    Column(
        "clients",
        _("Clients"),
        _number(lambda numbers: numbers.clients),
        numeric=True,
        hint=_("Consumers that are connected now"),
    ),
    Column(
        "dead_letters",
        _("Dead letters"),
        _number(lambda numbers: numbers.dead_letters),
        numeric=True,
        hint=_("Messages that the group gave up on"),
    ),
    Column("topics", _("Topics"), _number(lambda numbers: len(numbers.topics)), numeric=True),
)
COLUMNS: Columns[GroupLine] = Columns(
    Column("name", _("Group"), lambda line: line.row.name), *NUMBER_COLUMNS
)
BY_NUMBERS = frozenset(column.name for column in NUMBER_COLUMNS)

#: What each filter leaves; those that look at numbers leave out whom nobody can tell of.
FILTERS: dict[str, tuple[Any, Callable[[GroupLine], bool]]] = {
    "behind": (
        pgettext_lazy("groups", "behind"),
        lambda line: bool(line.numbers and line.numbers.lag),
    ),
    "offline": (
        pgettext_lazy("groups", "without clients"),
        lambda line: bool(line.numbers and line.numbers.clients == 0 and not line.row.system),
    ),
    "dead": (
        pgettext_lazy("groups", "with dead letters"),
        lambda line: bool(line.numbers and line.numbers.dead_letters),
    ),
    "idle": (
        pgettext_lazy("groups", "never consumed"),
        lambda line: bool(line.numbers and not line.numbers.consumed and not line.row.system),
    ),
    "system": (pgettext_lazy("groups", "system"), lambda line: line.row.system),
}
BY_ROW = frozenset({"system"})


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One choice of the filter, with how many groups it would show; None when nobody knows."""

    name: str
    label: Any
    count: int | None


def passing(lines: Iterable[GroupLine], chosen: str) -> list[GroupLine]:
    """The lines of a filter; without one all that are not the system's own."""
    if chosen in FILTERS:
        _label, passes = FILTERS[chosen]
        return [line for line in lines if passes(line)]
    return [line for line in lines if not line.row.system]


def chips(lines: Sequence[GroupLine], *, complete: bool) -> list[FilterChip]:
    """A chip for every filter; those that look at numbers have no count unless all are known."""
    return [
        FilterChip(name, label, sum(map(passes, lines)) if complete or name in BY_ROW else None)
        for name, (label, passes) in FILTERS.items()
    ]


def numbered(
    cluster: Cluster, rows: Sequence[GroupRow], ordered_by: str, chosen: str
) -> tuple[Numbered[GroupMetrics], list[GroupLine]]:
    """The rows as lines, with the numbers that are known or that the order or filter needs."""
    needed = ordered_by in BY_NUMBERS or (chosen in FILTERS and chosen not in BY_ROW)
    numbers = Numbered(cluster, rows, bulk_group_metrics, metrics_of_groups, all_needed=needed)
    at_ms = now_ms()
    return numbers, [GroupLine(row, numbers.of(row.name), at_ms) for row in rows]
