"""Registry of exportable lists. An area registers lists in `ready` of the app config:

    tables.register(Table("topics", _("Topics"), "topics:list", COLUMNS, found, listing=…))

`found` queries the cluster like the page of the list, so the file equals all pages of the list.
Metrics of rows are queried part by part while the file is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

from console.frame.areas import areas
from console.frame.formats import exact
from console.frame.row_metrics import MetricsLine, RowMetrics
from console.frame.tables import Columns
from console.gateway import BrokerFailure, Cluster

#: Row count of a part; metrics are queried for one part at a time.
PART_ROWS: Final = 50
#: Suffix of time columns, which hold milliseconds since 1970.
MS: Final = "_ms"
#: Column that is true in rows with truncated texts.
CUT: Final = "is_cut"

T = TypeVar("T")
L = TypeVar("L", bound=MetricsLine)


@dataclass(frozen=True, slots=True)
class Asked:
    """Search, filter and ordering of a list; `chosen` is one of `Table.choices`, or empty."""

    search: str = ""
    chosen: str = ""
    ordering: str = "name"


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows, and the brokers whose metrics of these rows are missing."""

    rows: Sequence[Mapping[str, Any]]
    failures: tuple[BrokerFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The ordered rows of a list. `failures` are brokers with missing rows; `left_out` counts rows,
    or sources of rows, for which the filter had no values."""

    total: int
    parts: Iterable[Part]
    failures: tuple[BrokerFailure, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Table:
    """An exportable list. Columns have the field names of the API."""

    name: str
    title: Any
    #: URL name of the page with the list.
    page: str
    columns: Sequence[str]
    found: Callable[[Cluster, Asked], Found]
    #: Columns with orderings and search; None for a list with a fixed order and without search.
    listing: Columns[Any] | None = None
    #: Query parameter of the filter on the page.
    choice: str = ""
    choices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        """Resource of the permission to read the list."""
        label = self.page.partition(":")[0]
        return next((area.resource for area in areas() if area.label == label), "")

    @property
    def all_columns(self) -> list[str]:
        """Columns of the file. Time columns appear twice: in milliseconds, and as a date."""
        columns = []
        for name in self.columns:
            columns += [name, name.removesuffix(MS)] if name.endswith(MS) else [name]
        return [*columns, CUT]

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the file; absent values are unknown (None)."""
        row: dict[str, Any] = {}
        for name in self.columns:
            value = row[name] = values.get(name)
            if name.endswith(MS):
                row[name.removesuffix(MS)] = None if value is None else exact(value)
        return {**row, CUT: False}


_tables: dict[str, Table] = {}


def register(table: Table) -> None:
    _tables[table.name] = table


def find(name: str) -> Table | None:
    return _tables.get(name)


def known() -> list[str]:
    return list(_tables)


def numbered_parts(
    numbers: RowMetrics[Any], lines: Iterable[L], shape: Callable[[list[L]], list[dict[str, Any]]]
) -> Iterator[Part]:
    """The parts of a list: rows serialized by `shape`, with `numbers` as further columns."""
    for part in batched(lines, PART_ROWS):
        numbers.fill(part)
        rows = [{**item, **(item["numbers"] or {})} for item in shape(part)]
        yield Part(rows, numbers.failures)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` items, in order."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
