"""The columns that a page shows: defaults, address, cookie."""

from typing import Any

from django.http import HttpResponse
from django.test import RequestFactory

from console.frame.column_choice import read_choice
from console.frame.tables import Column, Columns

COLUMNS: Columns[Any] = Columns(
    Column("name", "Name"), Column("lag", "Lag"), Column("account", "Account", optional=True)
)


def shown(query: str, cookie: str = "") -> str:
    request = RequestFactory().get(f"/{query}")
    request.COOKIES["gantry_columns_groups"] = cookie
    return " ".join(
        name for name, on in read_choice(request, "groups", COLUMNS).shown.items() if on
    )


def test_a_list_shows_its_columns_without_the_optional_ones() -> None:
    assert shown("") == "name lag"


def test_the_address_chooses_and_the_first_column_stays() -> None:
    assert shown("?columns=account") == "name account"
    assert shown("?columns=name") == "name"


def test_the_cookie_remembers_until_the_address_says_otherwise() -> None:
    assert shown("", "name.account") == "name account"
    assert shown("?columns=lag", "name.account") == "name lag"


def test_unknown_names_change_nothing() -> None:
    assert shown("?columns=%00&columns=evil", "<script>") == "name lag"


def test_only_a_choice_of_the_address_is_stored() -> None:
    for query, stored in (("", ""), ("?columns=evil", ""), ("?columns=account", "name.account")):
        response = HttpResponse()
        read_choice(RequestFactory().get(f"/{query}"), "groups", COLUMNS).remember(response)
        cookie = response.cookies.get("gantry_columns_groups")
        assert (cookie.value if cookie else "") == stored
