"""Lists: search, order, pages, and continuation by cursor."""

import base64
import contextlib
import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from console.api.paging import LIMIT_MAX, cut
from console.frame.tables import PAGE_SIZE, Column, Columns, TableQuery


@dataclass(frozen=True)
class Row:
    name: str
    lag: int | None = None


COLUMNS: Columns[Row] = Columns(
    Column("name", "Name", lambda row: row.name),
    Column("lag", "Lag", lambda row: row.lag, numeric=True),
    Column("note", "Note"),
)


def query(**params: str) -> TableQuery[Row]:
    return TableQuery.read(params, COLUMNS, default="name")


def names(rows: list[Row]) -> list[str]:
    return [row.name for row in rows]


def test_every_word_of_a_search_must_be_in_the_name() -> None:
    rows = [Row("orders-paid"), Row("ORDERS"), Row("paid-late")]
    assert names(query(q="Order").matching(rows)) == ["orders-paid", "ORDERS"]
    assert names(query(q="paid orders").matching(rows)) == ["orders-paid"]
    assert len(query(q="  ").matching(rows)) == 3


def test_unknown_values_come_last_in_either_direction_and_equal_ones_by_name() -> None:
    rows = [Row("c", 1), Row("b", None), Row("a", 1), Row("d", 5)]
    assert names(query(ordering="lag").ordered(rows)) == ["a", "c", "d", "b"]
    assert names(query(ordering="-lag").ordered(rows)) == ["d", "a", "c", "b"]


@pytest.mark.parametrize("ordering", ["note", "nothing", "--lag", "", "-", "name;drop"])
def test_an_order_that_does_not_exist_is_the_usual_one(ordering: str) -> None:
    assert query(ordering=ordering).ordering == "name"


@pytest.mark.parametrize("page", ["0", "-1", "abc", "1e3", "9999999", "²", ""])
def test_a_page_that_makes_no_sense_is_the_first(page: str) -> None:
    assert query(page=page).number == 1


def test_pages_cut_the_rows_and_end_where_they_end() -> None:
    rows = [Row(f"t{number:03}") for number in range(PAGE_SIZE * 2 + 1)]
    last = query(page="99").page(rows)
    assert (last.number, last.pages, last.first, last.last) == (3, 3, 101, 101)
    assert names(last.rows) == ["t100"]
    empty = query().page([])
    assert (empty.number, empty.pages, empty.first, empty.last) == (1, 1, 0, 0)


def test_heads_lead_to_the_other_direction() -> None:
    heads = {head.column.name: head for head in query(ordering="-lag").page([]).heads}
    assert (heads["lag"].ordering, heads["lag"].state) == ("lag", "descending")
    assert (heads["name"].ordering, heads["name"].state) == ("name", "none")
    assert heads["note"].ordering == ""
    assert query().page([]).heads[1].ordering == "-lag", "numbers start with the largest"


def test_names_are_ordered_without_regard_to_case_for_pages_and_cursors() -> None:
    rows = [Row(name) for name in ("b", "A", "C", "a", "B")]
    assert names(query().ordered(rows)) == ["A", "a", "B", "b", "C"]
    assert names(query(ordering="-name").ordered(rows)) == ["C", "b", "B", "a", "A"]
    assert walk(rows, "name", 2) == ["A", "a", "B", "b", "C"]
    assert walk(rows, "-name", 1) == ["C", "b", "B", "a", "A"]
    assert walk(rows, "lag", 2) == ["A", "a", "B", "b", "C"]


def walk(rows: list[Row], ordering: str, limit: int) -> list[str]:
    """Return all names by cursor."""
    seen: list[str] = []
    cursor = ""
    while True:
        params = {"ordering": ordering, "limit": str(limit), "cursor": cursor}
        part = cut(params, COLUMNS, rows)
        seen += names(part.rows)
        if part.next_cursor is None:
            return seen
        cursor = part.next_cursor


@given(
    lags=st.lists(st.none() | st.integers(0, 3), max_size=30),
    ordering=st.sampled_from(COLUMNS.orderings),
    limit=st.integers(1, 7),
)
def test_walking_by_cursor_gives_every_row_once_in_order(
    lags: list[int | None], ordering: str, limit: int
) -> None:
    rows = [Row(f"t{number}", lag) for number, lag in enumerate(lags)]
    random.Random(1).shuffle(rows)
    expected = names(query(ordering=ordering).ordered(rows))
    assert walk(rows, ordering, limit) == expected


def test_rows_that_come_and_go_do_not_repeat_others() -> None:
    rows = [Row(f"t{number}", number) for number in range(10)]
    first = cut({"ordering": "-lag", "limit": "4"}, COLUMNS, rows)
    assert names(first.rows) == ["t9", "t8", "t7", "t6"]
    later = [row for row in rows if row.name != "t6"] + [Row("new", 100)]
    second = cut({"ordering": "-lag", "cursor": first.next_cursor or ""}, COLUMNS, later)
    assert names(second.rows) == ["t5", "t4", "t3", "t2", "t1", "t0"]


@pytest.mark.parametrize("limit", ["0", "-1", "abc", str(LIMIT_MAX + 1), "9" * 5000, "\uff11"])
def test_a_limit_out_of_range_is_refused(limit: str) -> None:
    with pytest.raises(ValidationError):
        cut({"limit": limit}, COLUMNS, [])


def test_an_order_that_does_not_exist_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValidationError, match="-lag"):
        cut({"ordering": "size"}, COLUMNS, [])


def test_a_cursor_of_another_order_is_refused() -> None:
    rows = [Row("a", 1), Row("b", 2)]
    cursor = cut({"ordering": "lag", "limit": "1"}, COLUMNS, rows).next_cursor or ""
    with pytest.raises(ValidationError):
        cut({"ordering": "name", "cursor": cursor}, COLUMNS, rows)


@given(text=st.text(min_size=1, max_size=200))
def test_any_text_as_cursor_is_refused_or_used(text: str) -> None:
    with contextlib.suppress(ValidationError):
        cut({"ordering": "lag", "cursor": text}, COLUMNS, [Row("a", 1), Row("b", None)])


@pytest.mark.parametrize(
    "place", ['["lag","text","a"]', '["lag",[1],"a"]', '["lag",{},"a"]', "[" * 5000, "1", "null"]
)
def test_a_cursor_of_the_wrong_kind_is_refused(place: str) -> None:
    cursor = base64.urlsafe_b64encode(place.encode()).decode()
    with pytest.raises(ValidationError):
        cut({"ordering": "lag", "cursor": cursor}, COLUMNS, [Row("a", 1)])
