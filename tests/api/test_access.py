"""Every address of the console with nobody signed in, with a reader, and with staff.

The list is taken from the URL configuration, so an address that is added is tested too.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.api.conftest import Api, browser
from tests.support.cluster import Cluster

#: Addresses that answer without a sign-in, on purpose.
OPEN = {
    *("accounts:login", "accounts:logout", "accounts:theme", "set_language"),
    *("livez", "readyz", "healthz", "metrics", "varz", "api-schema", "api-docs"),
}
ARGUMENTS = {
    "cluster": "local",
    "broker": "broker-a",
    "topic": "TBW102",
    "group": "TOOLS_CONSUMER",
    "client": "nobody",
    "number": "1",
}
UNSAFE = ("post", "put", "patch", "delete")


class Route(NamedTuple):
    name: str
    path: str
    is_api: bool


def routes() -> list[Route]:
    return list(walk(get_resolver().url_patterns, "/", ""))


def walk(patterns: list[URLPattern | URLResolver], path: str, space: str) -> Iterator[Route]:
    for pattern in patterns:
        here = path + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else space
            yield from walk(pattern.url_patterns, here, inner)
        else:
            yield Route(f"{space}{pattern.name}", filled(here), here.startswith("/api/"))


def filled(path: str) -> str:
    for part in path.split("<")[1:]:
        declared = part.split(">")[0]
        name = declared.rpartition(":")[2]
        path = path.replace(f"<{declared}>", ARGUMENTS.get(name, "0"))
    return path


ROUTES = routes()
CLOSED = [route for route in ROUTES if route.name not in OPEN]
IDS = [route.name for route in CLOSED]


def test_the_list_is_complete() -> None:
    names = {route.name for route in ROUTES}
    assert names >= OPEN
    assert {"topics:delete", "groups:edit", "api-topic", "api-groups", "clusters:overview"} <= names


@pytest.mark.parametrize("route", CLOSED, ids=IDS)
def test_nobody_gets_in_without_signing_in(route: Route, db: None, local: Cluster) -> None:
    for method in ("get", *UNSAFE):
        answer = getattr(Client(), method)(route.path)
        if route.is_api:
            assert answer.status_code == 401, method
            assert answer.headers["WWW-Authenticate"].startswith("Token")
            assert answer.headers["Content-Type"] == "application/problem+json"
        else:
            assert answer.status_code == 302, method
            assert answer.headers["Location"].startswith("/accounts/login/?next=")


@pytest.mark.parametrize("route", CLOSED, ids=IDS)
def test_a_reader_changes_nothing(route: Route, reader: User, local: Cluster) -> None:
    if route.name == "accounts:password":
        return  # their own
    client = Api(reader).client if route.is_api else browser(reader)
    for method in UNSAFE:
        answer = getattr(client, method)(route.path)
        assert answer.status_code == 403, method


@pytest.mark.parametrize(
    "name",
    [
        *("topics:create", "topics:edit", "topics:delete"),
        *("groups:create", "groups:edit", "groups:delete"),
    ],
)
def test_a_reader_is_not_shown_forms_they_may_not_send(
    name: str, reader: User, local: Cluster
) -> None:
    route = next(route for route in ROUTES if route.name == name)
    assert browser(reader).get(route.path).status_code == 403


@pytest.mark.parametrize("route", CLOSED, ids=IDS)
def test_no_address_fails_for_staff(route: Route, staff: User, local: Cluster) -> None:
    client = Api(staff).client if route.is_api else browser(staff)
    answer = client.get(route.path)
    assert answer.status_code in {200, 302, 400, 404, 405}, answer.content[:500]


@pytest.mark.parametrize("token", ["", "nonsense", "Token", "Token x", "Bearer x", "Token " * 99])
def test_a_wrong_token_opens_nothing(token: str, db: None, local: Cluster) -> None:
    answer = Client(headers={"Authorization": token}).get("/api/v1/clusters/local/topics")
    assert answer.status_code == 401


def test_an_account_that_is_switched_off_loses_its_session_and_token(
    staff: User, local: Cluster
) -> None:
    api, client = Api(staff), browser(staff)
    staff.is_active = False
    staff.save()
    assert api("get", "/topics").status_code == 401
    assert client.get("/clusters/local/topics/").status_code == 302


def test_a_session_changes_nothing_without_the_forms_token(staff: User, local: Cluster) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post("/clusters/local/create-topic/", {"name": "x"})
    assert answer.status_code == 403
    assert b"CONSOLE_TRUSTED_ORIGINS" in answer.content
    answer = client.post("/api/v1/clusters/local/topics", "{}", content_type="application/json")
    assert answer.status_code == 403


def test_a_part_that_htmx_asks_for_leads_back_to_its_page(db: None, local: Cluster) -> None:
    answer = Client().get(
        "/clusters/local/topics/",
        headers={
            "HX-Request": "true",
            "HX-Current-URL": "http://testserver/clusters/local/topics/",
        },
    )
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/accounts/login/?next=%2Fclusters%2Flocal%2Ftopics%2F"
