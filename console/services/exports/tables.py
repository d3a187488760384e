"""Lists of the console as files. An area that has lists registers them in the `ready` of its apps:

    tables.register(Table("topics", _("Topics"), "topics:list", COLUMNS, found, listing=…))

`found` asks the cluster as the page does, so the file has what the page would show on all its
pages. The numbers of rows are asked for part by part while the file is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

from console.frame.formats import exact
from console.frame.numbered import Line, Numbered
from console.frame.tables import Columns
from console.gateway import BrokerFailure, Cluster

#: Rows whose numbers are asked for at once.
PART_ROWS: Final = 50
MS: Final = "_ms"
CUT: Final = "is_cut"

T = TypeVar("T")
L = TypeVar("L", bound=Line)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reader of the list asked for; `chosen` is one of the table's choices, or empty."""

    search: str = ""
    chosen: str = ""
    ordering: str = "name"


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows, and the brokers that had something to say about them and did not."""

    rows: Sequence[Mapping[str, Any]]
    failures: tuple[BrokerFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a list in its order. `failures` are brokers whose rows are missing; of `left_out`
    rows, or sources of rows, nobody could say whether they belong to it."""

    total: int
    parts: Iterable[Part]
    failures: tuple[BrokerFailure, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Table:
    """One list. Its columns are called as in the API."""

    name: str
    title: Any
    #: The name of the page with the list.
    page: str
    columns: Sequence[str]
    found: Callable[[Cluster, Asked], Found]
    #: What it can be ordered by; None for a list that has one order and no search.
    listing: Columns[Any] | None = None
    #: The name of the page's filter in its address.
    choice: str = ""
    choices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_columns(self) -> list[str]:
        """Times are there twice, for programs and for people."""
        columns = []
        for name in self.columns:
            columns += [name, name.removesuffix(MS)] if name.endswith(MS) else [name]
        return [*columns, CUT]

    def row(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the file; a value that is not given is unknown."""
        row: dict[str, Any] = {}
        for name in self.columns:
            value = row[name] = given.get(name)
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
    numbers: Numbered[Any], lines: Iterable[L], shape: Callable[[list[L]], list[dict[str, Any]]]
) -> Iterator[Part]:
    """The parts of a list whose rows have `numbers`, put beside what else `shape` tells of them."""
    for part in batched(lines, PART_ROWS):
        numbers.fill(part)
        rows = [{**item, **(item["numbers"] or {})} for item in shape(part)]
        yield Part(rows, numbers.failures)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
