"""Every URL of the console, with every role and without sign-in, against the access matrix. The
URLs come from the URL configuration, so new URLs are tested too.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from console.accounts.models import CustomRole, Profile
from console.frame.access import Need, Role, may, need_of
from console.frame.targets import resources, target_of
from tests.api.conftest import Api, browser
from tests.support.calls import leads_to
from tests.support.cluster import Cluster
from tests.support.routes import ABSENT, METHODS, PRESENT, Route, routes

MATRIX_FILE = Path(__file__).with_name("access_matrix.toml")
ANYONE = "anyone"
LEVELS = [ANYONE, *(role.value for role in Role if role is not Role.NONE)]
#: Writes without audit row: display settings, sign-in and sign-out.
NOT_AUDITED = {
    "accounts:login",
    "accounts:logout",
    "accounts:theme",
    "accounts:zone",
    "set_language",
    "classic:login/login.do",
    "classic:login/logout.do",
}
#: POST because of the long parameters; no state changes.
ONLY_ASKS = {
    "api-messages-test-filter",
    "api-alarm-rules-preview",
    "api-masking-rules-preview",
    "classic:message/queryMessagePageByTopic.query",
    "classic:dlqMessage/queryDlqMessageByConsumerGroup.query",
}


def read_matrix() -> dict[tuple[str, str], str]:
    """The least level by route and method."""
    table = tomllib.loads(MATRIX_FILE.read_text(encoding="utf-8"))
    return {
        (name, method.lower()): level
        for level, named in table.items()
        for name, methods in named.items()
        for method in methods
    }


MATRIX = read_matrix()
ROUTES = routes()


def is_open(route: Route) -> bool:
    return any(least(route, method) == ANYONE for method in METHODS)


def least(route: Route, method: str) -> str:
    default = Role.VIEWER if method == "get" else Role.OPERATOR
    return MATRIX.get((route.name, method), default.value)


@pytest.fixture
def people(db: None) -> dict[str, User]:
    """One account of each role."""
    flags = {Role.VIEWER: {}, Role.OPERATOR: {"is_staff": True}}
    made = {
        role.value: User.objects.create_user(role.value, password="x", **flags.get(role, {}))
        for role in (Role.VIEWER, Role.OPERATOR)
    }
    made[Role.ADMINISTRATOR.value] = User.objects.create_superuser("administrator", password="x")
    return made


def call(route: Route, method: str, user: User | None) -> Any:
    """Return URL arguments: existing objects for reads, missing objects for writes."""
    by_token = route.is_api or route.is_classic
    client = Api(user).client if user is not None and by_token else browser(user)
    path = route.path(PRESENT if method == "get" else ABSENT)
    more = {"data": "{}", "content_type": "application/json"} if by_token else {}
    return getattr(client, method)(path, **({} if method == "get" else more))


def test_the_matrix_names_only_routes_and_levels_that_there_are() -> None:
    table = tomllib.loads(MATRIX_FILE.read_text(encoding="utf-8"))
    assert list(table) == LEVELS
    known = {(route.name, method) for route in ROUTES for method in METHODS}
    unknown = {entry for entry in MATRIX if entry not in known}
    assert not unknown
    assert {"topics:delete", "groups:edit", "api-topic", "api-groups", "clusters:overview"} <= {
        route.name for route in ROUTES
    }


def test_every_operation_of_the_openapi_document_is_among_the_routes() -> None:
    document = SchemaGenerator().get_schema(request=None, public=True)
    described = {
        (path, method) for path, operations in document["paths"].items() for method in operations
    }
    blank = dict.fromkeys(PRESENT, "x")
    tested = {
        (route.path(blank), method) for route in ROUTES if route.is_api for method in route.methods
    }
    filled = {(_blanked(path), method) for path, method in described}
    assert filled <= {(_blanked(path), method) for path, method in tested}


def _blanked(path: str) -> str:
    return "/".join(
        "x" if part.startswith("{") or part in {"x", "0"} else part for part in path.split("/")
    )


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_every_role_may_do_what_the_matrix_says_and_no_more(
    route: Route, people: dict[str, User], local: Cluster
) -> None:
    if not is_open(route):
        for method in METHODS:
            sends_to_sign_in(route, method)
    for method in route.methods:
        needed = LEVELS.index(least(route, method))
        for level, user in people.items():
            answer = call(route, method, user)
            allowed = LEVELS.index(level) >= needed
            text = b"" if answer.streaming else answer.content[:200]
            said = f"{method} as {level}: {answer.status_code} {text!r}"
            assert (answer.status_code == 403) is not allowed, said
            assert answer.status_code != 401, said
            assert answer.status_code < 500 or (method != "get" and answer.status_code == 503), said
    for method in set(METHODS[1:]) - set(route.methods):
        if not is_open(route):
            answer = call(route, method, people[Role.VIEWER.value])
            assert answer.status_code in {403, 405}, method


@pytest.mark.must_beat(16)
def test_every_operation_needs_the_permission_of_its_resource(db: None, local: Cluster) -> None:
    """With every other permission, each route is denied; with its own permission, allowed."""
    user = User.objects.create_user("limited", password="x")
    role = CustomRole.objects.create(name="limited")
    Profile.objects.filter(user=user).update(role=Role.NONE)
    user.refresh_from_db()
    user.profile.roles.add(role)
    script, page = Api(user).client, browser(user)
    for route in ROUTES:
        for method in route.methods:
            need = need_of(route.view, method.upper())
            if need in (Need.OPEN, Need.SIGNED_IN) or route.name == "api-schema":
                continue
            target = target_of(route.view, route.arguments, {})
            assert target.resource, route.name
            others = [f"{each}:*" for each in resources() if each != target.resource]
            CustomRole.objects.update(permissions=others)
            client = script if route.is_api or route.is_classic else page
            answer = getattr(client, method)(route.path(ABSENT))
            assert answer.status_code == 403, f"{method} {route.name}: {answer.status_code}"
            own = [f"{target.resource}:{need.value}"]
            CustomRole.objects.update(permissions=own)
            assert may(User.objects.get(pk=user.pk), need, target), f"{method} {route.name}"


def sends_to_sign_in(route: Route, method: str) -> None:
    answer = call(route, method, None)
    if route.is_classic:
        assert answer.status_code == 401, method
        assert answer.json()["status"] == -1
    elif route.is_api:
        assert answer.status_code == 401, method
        assert answer.headers["WWW-Authenticate"].startswith("Token")
        assert answer.headers["Content-Type"] == "application/problem+json"
    else:
        assert answer.status_code == 302, method
        assert answer.headers["Location"].startswith("/accounts/login/?next=")


def test_whatever_changes_something_writes_an_audit_row() -> None:
    """Each write handler opens an audit row, directly or in a called function."""
    silent = []
    for route in ROUTES:
        owner = getattr(route.view, "view_class", None) or getattr(route.view, "cls", None)
        if route.name in NOT_AUDITED | ONLY_ASKS or owner is None:
            continue
        for method in route.methods[1:] if "get" in route.methods else route.methods:
            handler = getattr(owner, method)
            if not any(leads_to(handler, each, owner) for each in ("audited", "audited_as")):
                silent.append(f"{route.name} {method}")
    assert not silent, "writes that leave no row in the audit list"


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
