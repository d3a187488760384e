"""`/clusters`, `/roles` and `/who-may`: deprecated arrays, and pages with a parameter of lists."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.accounts.models import CustomRole
from console.api.bare_lists import DEPRECATED_S
from tests.api.conftest import Api

WHO_MAY = "/api/v1/who-may?resource=topics&action=read"
#: A list, and the member of its items by which a page is ordered.
LISTS = [
    ("/api/v1/clusters", "name"),
    ("/api/v1/roles", "name"),
    (WHO_MAY, "username"),
]
pytestmark = pytest.mark.must_beat(28)


@pytest.fixture
def lists(staff: User, settings: Settings) -> Any:
    """A GET of each list; each list has at least five items."""
    settings.CONSOLE_CLUSTERS = {f"cluster-{number}": "127.0.0.1:1" for number in range(5)}
    CustomRole.objects.bulk_create(
        CustomRole(name=f"team-{number}", permissions=[]) for number in range(5)
    )
    for number in range(5):
        User.objects.create_superuser(f"admin-{number}", password="x")
    client = Api(staff).client

    def get(path: str, query: str = "") -> Any:
        return client.get(f"{path}{'&' if '?' in path else '?'}{query}" if query else path)

    return get


@pytest.mark.parametrize(("path", "name"), LISTS)
def test_an_array_is_deprecated_and_links_to_the_page(path: str, name: str, lists: Any) -> None:
    answer = lists(path)
    assert answer.status_code == 200, answer.content
    items = answer.json()
    assert len(items) >= 5
    assert answer.headers["Deprecation"] == f"@{DEPRECATED_S}"
    link = re.fullmatch(r'<([^>]+)>; rel="successor-version"', answer.headers["Link"])
    assert link
    page = lists(link[1])
    assert page.status_code == 200, page.content
    assert sorted(page.json()["items"], key=str) == sorted(items, key=str)
    assert "Deprecation" not in page.headers
    assert "Link" not in page.headers


@pytest.mark.parametrize(("path", "name"), LISTS)
def test_pages_have_each_item_once_in_order(path: str, name: str, lists: Any) -> None:
    all_names = sorted(each[name] for each in lists(path).json())
    for ordering, wanted in (("name", all_names), ("-name", all_names[::-1])):
        found, query = [], f"limit=2&ordering={ordering}"
        for _page in range(len(all_names)):
            body = lists(path, query).json()
            assert body["total"] == len(all_names)
            assert len(body["items"]) <= 2
            found += [each[name] for each in body["items"]]
            if body["next_cursor"] is None:
                break
            query = f"limit=2&ordering={ordering}&cursor={body['next_cursor']}"
        assert found == wanted


@pytest.mark.parametrize(("path", "name"), LISTS)
def test_each_parameter_of_lists_gives_a_page(path: str, name: str, lists: Any) -> None:
    (item,) = lists(path, "q=-3").json()["items"]
    assert item[name].endswith("-3")
    assert lists(path, "q=no-such-name").json() == {"items": [], "total": 0, "next_cursor": None}
    chosen = lists(path, f"fields={name}").json()
    assert {frozenset(each) for each in chosen["items"]} == {frozenset({name})}
    assert "items" in lists(path, "q=").json()
    assert "items" in lists(path, "ordering=name").json()
    assert lists(path, "cursor=").json()["total"] == chosen["total"]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=²", "limit"),
        ("limit=1e3", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("ordering=namesrv_addr", "ordering"),
        ("ordering=--name", "ordering"),
        ("cursor=%00", "cursor"),
        ("cursor=W10", "cursor"),
        ("cursor=WyJuYW1lIiwxLCJhIl0", "cursor"),
        ("cursor=WyJuYW1lIixbXSwiYSJd", "cursor"),
        ("fields=no_such_member", "fields"),
        ("limit=1&limit=2", "limit"),
        ("Limit=1", "Limit"),
    ],
)
@pytest.mark.parametrize(("path", "name"), LISTS)
def test_hostile_parameters_are_refused(
    path: str, name: str, query: str, parameter: str, lists: Any
) -> None:
    answer = lists(path, query)
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["errors"]) == [parameter]
