"""Columns and filters of the group list, shared by page, API and export."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.row_metrics import RowMetrics, metric
from console.frame.tables import Column, Columns
from console.gateway import Cluster, now_ms
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics, bulk_group_metrics, metrics_of_groups

#: Sort key of a group without lag when the list is ordered by lag in time.
NO_LAG_MS = 2**53


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A row with metrics of the time `at_ms`; None before the metrics are requested."""

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
    def behind(self) -> bool:
        return self.numbers is not None and self.numbers.is_behind(self.at_ms)

    @property
    def lag_ms(self) -> float | None:
        return None if self.lag_seconds is None else self.lag_seconds * 1000


def _pending_order(numbers: GroupMetrics) -> int | None:
    """Sort key for the lag in time. Unlike the lag, the key is independent of the clock."""
    if numbers.lag == 0:
        return -NO_LAG_MS
    return None if numbers.pending_since_ms is None else -numbers.pending_since_ms


METRIC_COLUMNS: tuple[Column[GroupLine], ...] = (
    Column(
        "lag",
        _("Lag"),
        metric(lambda numbers: numbers.lag),
        numeric=True,
        hint=_(
            "Messages stored but not yet committed as consumed, including retries. "
            "Consumers commit every 5 seconds: younger lag is normal."
        ),
    ),
    Column(
        "lag_seconds",
        _("Lag (time)"),
        metric(_pending_order),
        numeric=True,
        hint=_("Age of the oldest unconsumed message"),
    ),
    Column("retry_lag", _("Retry lag"), metric(lambda numbers: numbers.retry_lag), True),
    Column(
        "rate",
        _("Consume rate"),
        metric(lambda numbers: numbers.rate),
        numeric=True,
        hint=_("Messages per second, average of the last minute"),
    ),
    Column(
        "clients",
        _("Clients"),
        metric(lambda numbers: numbers.clients),
        numeric=True,
        hint=_("Connected consumers"),
    ),
    Column(
        "dead_letters",
        _("Dead letters"),
        metric(lambda numbers: numbers.dead_letters),
        numeric=True,
        hint=_("Messages in the dead-letter queue of the group"),
    ),
    Column("topics", _("Topics"), metric(lambda numbers: numbers.topic_count), numeric=True),
)
COLUMNS: Columns[GroupLine] = Columns(
    Column("name", _("Group"), lambda line: line.row.name),
    Column("labels", _("Labels"), below=True),
    *METRIC_COLUMNS,
)
METRIC_NAMES = frozenset(column.name for column in METRIC_COLUMNS)

#: Label and predicate of each filter. Filters by a metric exclude groups with an unknown metric.
FILTERS: dict[str, tuple[Any, Callable[[GroupLine], bool]]] = {
    "behind": (
        pgettext_lazy("groups", "behind"),
        lambda line: line.behind,
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
ROW_FILTERS = frozenset({"system"})


@dataclass(frozen=True, slots=True)
class FilterChip:
    """A filter chip: label and number of groups; None means unknown."""

    name: str
    label: Any
    count: int | None


def passing(lines: Iterable[GroupLine], chosen: str) -> list[GroupLine]:
    """The lines of a filter; without a filter, all groups except system groups."""
    if chosen in FILTERS:
        _label, passes = FILTERS[chosen]
        return [line for line in lines if passes(line)]
    return [line for line in lines if not line.row.system]


def chips(lines: Sequence[GroupLine], *, complete: bool) -> list[FilterChip]:
    """A chip for every filter. Filters by a metric have no count unless all metrics are known."""
    return [
        FilterChip(
            name, label, sum(map(passes, lines)) if complete or name in ROW_FILTERS else None
        )
        for name, (label, passes) in FILTERS.items()
    ]


def numbered(
    cluster: Cluster, rows: Sequence[GroupRow], ordered_by: str, chosen: str
) -> tuple[RowMetrics[GroupMetrics], list[GroupLine]]:
    """The rows as lines, with the known metrics and the metrics that sort order or filter need."""
    needed = ordered_by in METRIC_NAMES or (chosen in FILTERS and chosen not in ROW_FILTERS)
    numbers = RowMetrics(cluster, rows, bulk_group_metrics, metrics_of_groups, all_needed=needed)
    at_ms = now_ms()
    return numbers, [
        GroupLine(row, numbers.of(row.name), numbers.measured_ms(row.name) or at_ms) for row in rows
    ]
