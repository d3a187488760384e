"""Cursor pagination for lists that change between requests.

`?ordering=-lag&limit=50` gives the first rows and `next_cursor`; `&cursor=…` continues after the
last returned row, identified by sort value and name. A row with an unchanged sort value appears
exactly once, also when other rows appear or vanish between requests.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from console.api.fields import FIELDS
from console.frame.tables import Columns, Named, TableQuery, compare_values, sort_value

R = TypeVar("R", bound=Named)

LIMIT_DEFAULT = 50
LIMIT_MAX = 500
#: Maximum number of digits of a number in an address, with leading zeros.
DIGITS_MAX = 9


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """Rows of one page, the number of matching rows, and the cursor of the next page."""

    rows: list[R]
    total: int
    next_cursor: str | None


def cut(
    params: Mapping[str, str], columns: Columns[R], rows: Sequence[R], *, default: str = "name"
) -> Slice[R]:
    """Sort the rows and return the page of `ordering`, `limit` and `cursor`; 400 for an invalid
    value.
    """
    ordering = params.get("ordering") or default
    if columns.sortable(ordering.removeprefix("-")) is None:
        known = ", ".join(columns.orderings)
        raise ValidationError({"ordering": [_("Expected one of: %(known)s") % {"known": known}]})
    limit = read_limit(params.get("limit"))
    query = TableQuery(columns, "", ordering, 1)
    ordered = query.ordered(rows)
    after = read_cursor(params.get("cursor"), ordering)
    start = 0 if after is None else _start(query, ordered, after)
    shown = ordered[start : start + limit]
    more = start + limit < len(ordered)
    return Slice(shown, len(rows), write_cursor(query, shown[-1]) if more and shown else None)


def read_limit(text: str | None, most: int = LIMIT_MAX) -> int:
    if not text:
        return LIMIT_DEFAULT
    is_number = text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX
    if not (is_number and 1 <= int(text) <= most):
        raise ValidationError(
            {"limit": [_("Expected a number from 1 to %(most)d.") % {"most": most}]}
        )
    return int(text)


def write_cursor(query: TableQuery[R], row: R) -> str:
    """Return the cursor after `row`: the ordering, the row's sort value and the row's name."""
    place = [query.ordering, _value(query, row), row.name]
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str | None, ordering: str) -> tuple[Any, str] | None:
    """Return sort value and name of the last returned row; 400 for a cursor of a different
    ordering.
    """
    if not text:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        of_ordering, value, name = place
        usable = of_ordering == ordering and isinstance(name, str) and _is_plain(value)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        usable = False
    if not usable:
        raise ValidationError(
            {"cursor": [_("Not a cursor of this list in this order; start without one.")]}
        )
    return value, name


def _start(query: TableQuery[R], ordered: Sequence[R], after: tuple[Any, str]) -> int:
    """Return the index of the first row after a cursor."""
    value, name = after
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        row = ordered[middle]
        try:
            sign = compare_values(_value(query, row), value, query.descending)
        except TypeError:
            raise ValidationError({"cursor": [_("Not a cursor of this list.")]}) from None
        if sign > 0 or (sign == 0 and sort_value(row.name) > sort_value(name)):
            high = middle
        else:
            low = middle + 1
    return low


def _value(query: TableQuery[R], row: R) -> Any:
    column = query.columns.sortable(query.ordered_by)
    return column.key(row) if column is not None and column.key is not None else row.name


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def list_parameters(columns: Columns[Any], *more: OpenApiParameter) -> list[OpenApiParameter]:
    """Return the query parameters of a list, for the OpenAPI document."""
    return [
        OpenApiParameter("q", OpenApiTypes.STR, description="Words that the name must hold."),
        *more,
        OpenApiParameter("ordering", OpenApiTypes.STR, enum=columns.orderings),
        OpenApiParameter(
            "limit", OpenApiTypes.INT, description=f"1 to {LIMIT_MAX}; {LIMIT_DEFAULT} if absent."
        ),
        OpenApiParameter(
            "cursor", OpenApiTypes.STR, description="`next_cursor` of the answer before."
        ),
        FIELDS,
    ]
