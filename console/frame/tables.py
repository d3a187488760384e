"""Lists of live rows: search, filter, sort and pagination on the server, for pages and API.

A list declares columns once:

    COLUMNS = Columns(
        Column("name", _("Name"), lambda row: row.name),
        Column("lag", _("Lag"), lambda row: row.lag, numeric=True),
    )
    query = TableQuery.read(request.GET, COLUMNS, default="name")
    page = query.page(rows)            # for a page: page.rows, page.pages, …
    ordered = query.ordered(rows)      # for the API, which paginates by cursor

Unknown values (None) come last in either direction, and rows with equal values in order of name, so
that two calls give the same order. Texts are ordered without regard to case. The URL holds the
complete state of a list.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

from django.http import HttpRequest
from django.utils.functional import cached_property

from console.frame.column_choice import ColumnChoice, read_choice

PAGE_SIZE = 50
#: Longest search, characters: a label with a quoted value fits.
SEARCH_CHARS_MAX = 512


class Named(Protocol):
    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)
N = TypeVar("N", bound=Named)


# Without slots: a frozen generic with slots cannot be made as Column[Row](…) in Python 3.11.
@dataclass(frozen=True)
class Column(Generic[R]):
    """One column; a column without `key` is not sortable.

    A page shows an `optional` column only when the user has chosen the column. A column `below`
    has no head: its values stand below those of the first column.
    """

    name: str
    title: Any
    key: Callable[[R], Any] | None = None
    numeric: bool = False
    hint: Any = ""
    optional: bool = False
    below: bool = False


class Columns(Generic[R]):
    """Ordered columns of one list."""

    def __init__(self, *columns: Column[R]) -> None:
        self.columns = columns
        self._by_name = {column.name: column for column in columns}

    def __iter__(self) -> Any:
        return iter(self.columns)

    def sortable(self, name: str) -> Column[R] | None:
        column = self._by_name.get(name)
        return column if column is not None and column.key is not None else None

    @property
    def orderings(self) -> list[str]:
        """Return the valid values of `ordering`."""
        names = [column.name for column in self.columns if column.key is not None]
        return [*names, *(f"-{name}" for name in names)]


@dataclass(frozen=True)
class TableQuery(Generic[R]):
    """Search, order and page of a list request."""

    columns: Columns[R]
    search: str
    ordering: str
    number: int
    size: int = PAGE_SIZE
    choice: ColumnChoice | None = None

    @classmethod
    def of_page(
        cls, request: HttpRequest, columns: Columns[R], *, table: str, default: str
    ) -> "TableQuery[R]":
        """Parse the address of a page, with the columns that the user has chosen for `table`."""
        query = cls.read(request.GET, columns, default=default)
        return replace(query, choice=read_choice(request, table, columns))

    @classmethod
    def read(
        cls, params: Mapping[str, str], columns: Columns[R], *, default: str
    ) -> "TableQuery[R]":
        """Parse a query string; invalid parameters fall back to the defaults."""
        ordering = params.get("ordering", "")
        if columns.sortable(ordering.removeprefix("-")) is None:
            ordering = default
        page = params.get("page", "")
        number = int(page) if re.fullmatch(r"[1-9][0-9]{0,5}", page) else 1
        return cls(columns, params.get("q", "").strip()[:SEARCH_CHARS_MAX], ordering, number)

    @property
    def descending(self) -> bool:
        return self.ordering.startswith("-")

    @property
    def ordered_by(self) -> str:
        return self.ordering.removeprefix("-")

    def matching(self, rows: Iterable[N]) -> list[N]:
        """Return the rows whose name contains every search word, ignoring case."""
        words = self.search.lower().split()
        return [row for row in rows if all(word in row.name.lower() for word in words)]

    def ordered(self, rows: Iterable[R]) -> list[R]:
        """Return the sorted rows; thousands of rows take a few milliseconds."""
        column = self.columns.sortable(self.ordered_by)
        key = column.key if column is not None and column.key is not None else _name
        valued = [(sort_value(key(row)), row) for row in sorted(rows, key=_name)]
        known = [pair for pair in valued if pair[0] is not None]
        # The sort is stable, also with reverse=True.
        known.sort(key=_first, reverse=self.descending)
        return [row for _value, row in known] + [row for value, row in valued if value is None]

    def page(self, rows: Sequence[R]) -> "TablePage[R]":
        """Sort the rows and return the requested page, or the last page of a shorter list."""
        pages = max(1, ceil(len(rows) / self.size))
        number = min(self.number, pages)
        start = (number - 1) * self.size
        shown = self.ordered(rows)[start : start + self.size]
        return TablePage(self, shown, len(rows), number, pages)


@dataclass(frozen=True)
class TablePage(Generic[R]):
    """One page of a list, for templates."""

    query: "TableQuery[R]"
    rows: list[R]
    total: int
    number: int
    pages: int

    @property
    def names(self) -> list[str]:
        return [row.name for row in self.rows]

    @property
    def before(self) -> int:
        return self.number - 1

    @property
    def after(self) -> int:
        return self.number + 1

    @property
    def first(self) -> int:
        return (self.number - 1) * self.query.size + 1 if self.total else 0

    @property
    def last(self) -> int:
        return min(self.number * self.query.size, self.total)

    @cached_property
    def shows(self) -> dict[str, bool]:
        """Whether the page shows a column, by column name; empty: all columns."""
        choice = self.query.choice
        return choice.shown if choice is not None else {}

    @cached_property
    def heads(self) -> "list[Head]":
        """Column heads; a click on the current sort column reverses the order."""
        heads = []
        for column in self.query.columns:
            if column.below or not self.shows.get(column.name, True):
                continue
            here = column.name == self.query.ordered_by
            down = here and self.query.descending
            turn = ("" if down else "-") if here else ("-" if column.numeric else "")
            link = f"{turn}{column.name}" if column.key is not None else ""
            state = ("descending" if down else "ascending") if here else "none"
            heads.append(Head(column, link, state))
        return heads


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a column: `ordering` after a click, and `state` for `aria-sort`."""

    column: Column[Any]
    ordering: str
    state: str


def compare_values(one: Any, other: Any, descending: bool) -> int:
    """Compare two values of a column; None is last in either direction."""
    if one is None or other is None:
        return (one is None) - (other is None)
    sign = _three_way(sort_value(one), sort_value(other))
    return -sign if descending else sign


def _three_way(one: Any, other: Any) -> int:
    return (one > other) - (one < other)


def sort_value(value: Any) -> Any:
    """Return the sort key of a column's value: texts without regard to case, ties by code point."""
    return (value.casefold(), value) if isinstance(value, str) else value


def _name(row: Named) -> Any:
    return sort_value(row.name)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]
