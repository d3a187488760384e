"""The columns of a list that a page shows: from the address, else remembered in the browser.

`?columns=name&columns=lag` shows two columns. The page stores the choice of an address in a cookie
of the list, so that the list has the same columns on the next visit. Without address and cookie, a
list shows all columns that are not `optional`. The first column is always shown.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PARAMETER: Final = "columns"
COOKIE_AGE_S: Final = 365 * 24 * 3600
#: Maximum length of a remembered choice, characters.
COOKIE_CHARS_MAX: Final = 512


class Choosable(Protocol):
    """A column of a list (`console.frame.tables.Column`)."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> Any: ...
    @property
    def optional(self) -> bool: ...


@dataclass(frozen=True)
class ColumnChoice:
    """The choice for the list `table`: each column after the first, and whether it is shown."""

    table: str
    first: Choosable
    others: tuple[tuple[Choosable, bool], ...]
    is_of_address: bool

    @property
    def shown(self) -> dict[str, bool]:
        """Whether the page shows a column, by column name, for templates."""
        return {self.first.name: True, **{column.name: on for column, on in self.others}}

    @property
    def cookie(self) -> str:
        return f"gantry_columns_{self.table}"

    def remember(self, response: HttpResponse) -> None:
        """Store a choice of the address in the browser."""
        if not self.is_of_address:
            return
        response.set_cookie(
            self.cookie,
            ".".join(name for name, on in self.shown.items() if on),
            max_age=COOKIE_AGE_S,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )


def read_choice(request: HttpRequest, table: str, columns: Iterable[Choosable]) -> ColumnChoice:
    """Return the choice of a request; unknown names are ignored."""
    given = request.GET.getlist(PARAMETER)
    remembered = request.COOKIES.get(f"gantry_columns_{table}", "")[:COOKIE_CHARS_MAX]
    names = set(given or re.findall(r"\w+", remembered))
    first, *others = columns
    known = names & {column.name for column in (first, *others)}
    return ColumnChoice(
        table,
        first,
        tuple(
            (column, column.name in known if known else not column.optional) for column in others
        ),
        is_of_address=bool(given and known),
    )
