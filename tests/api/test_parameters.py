"""Query parameters of all operations: unknown ones are refused."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from knox.models import AuthToken
from pytest_django import Settings

from tests.api.conftest import API, Api, browser
from tests.support.cluster import Cluster

UNKNOWN = "no_such_parameter"
pytestmark = pytest.mark.must_beat(28)


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and OpenAPI operation."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def query_parameters(operation: dict[str, Any]) -> list[str]:
    return [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]


@pytest.fixture
def nowhere(staff: User, settings: Settings) -> Client:
    """An administrator's client; the cluster has no address, so no call reaches a broker."""
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    _instance, token = AuthToken.objects.create(staff)
    return Client(headers={"Authorization": f"Token {token}"})


def test_an_unknown_parameter_is_400_in_every_operation(nowhere: Client) -> None:
    accepted = []
    for method, path, operation in operations():
        url = re.sub(r"\{\w+\}", "1", path.replace("{cluster}", "local"))
        body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
        answer = getattr(nowhere, method)(f"{url}?{UNKNOWN}=1", **body)
        problem = answer.json() if answer.status_code == 400 else {}
        errors = problem.get("errors", {})
        told = " ".join(errors.get(UNKNOWN, []))
        missing = [name for name in query_parameters(operation) if name not in told]
        if list(errors) != [UNKNOWN] or missing:
            accepted.append(f"{method} {path}: {answer.status_code} {missing}")
        else:
            assert answer.headers["Content-Type"] == "application/problem+json"
    assert not accepted


def test_a_declared_parameter_is_accepted(nowhere: Client) -> None:
    assert nowhere.get(f"{API}/topics?ordering=name").status_code == 503
    answer = nowhere.get("/api/v1/audit?limit=1")
    assert answer.status_code == 200


def test_a_role_is_checked_before_the_parameters(reader: User, settings: Settings) -> None:
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    assert Api(reader)("post", f"/topics?{UNKNOWN}=1", {"name": "x"}).status_code == 403


def test_an_unsupported_method_stays_405(nowhere: Client) -> None:
    assert nowhere.put(f"{API}/topics?{UNKNOWN}=1").status_code == 405


def test_an_export_of_dead_letters_needs_the_role_of_exports(
    reader: User, operator: User, local: Cluster
) -> None:
    assert Api(reader)("get", "/dlq/nosuch/export").status_code == 403
    assert Api(operator)("get", "/dlq/nosuch/export").status_code == 404
    assert browser(reader).get("/clusters/local/dlq/nosuch/export/").status_code == 403
