"""Query parameters of all operations: unknown and repeated ones are refused; dry runs."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from knox.models import AuthToken
from pytest_django import Settings

from console.audit.models import AuditRow
from tests.api.conftest import API, Api, browser
from tests.support.cluster import Cluster

UNKNOWN = "no_such_parameter"
#: Writes without a dry run: of the console's own data, starts of jobs and exports, reads by POST,
#: and the direct delivery, whose result only the consumer knows.
WITHOUT_DRY_RUN = {
    "/api/v1/roles",
    "/api/v1/roles/{role}",
    "/api/v1/tokens",
    "/api/v1/tokens/{key}",
    "/api/v1/users",
    "/api/v1/users/{username}",
    "/api/v1/users/{username}/password",
    "/api/v1/users/{username}/roles",
    "/api/v1/users/{username}/second-factor",
    "/api/v1/users/{username}/tokens/{key}",
    "alarms/{number}/acknowledgement",
    "alarm-receivers",
    "alarm-receivers/{number}",
    "alarm-receivers/{number}/test",
    "alarm-rules",
    "alarm-rules:preview",
    "masking-rules",
    "masking-rules:preview",
    "masking-rules/{number}",
    "alarm-rules/{number}",
    "alarm-silences",
    "alarm-silences/{number}",
    "body-rules",
    "body-rules/{number}",
    "body-schemas/{schema}",
    "brokers/{broker}",
    "dlq/{group}/discard",
    "dlq/{group}/restore",
    "dlq/{group}/messages/{offset_msg_id}/try",
    "exports",
    "topics/{name}/protection",
    "groups/{name}/protection",
    "acl-users/{name}/protection",
    "acl-accounts/{name}/protection",
    "credentials",
    "jobs",
    "jobs/{number}/cancel",
    "jobs/{number}/continue",
    "jobs/{number}/pause",
    "jobs/{number}/resume",
    "messages/exports",
    "messages/{offset_msg_id}/delivery",
    "messages:test-filter",
    "read-only",
    "saved-views",
    "saved-views/{id}",
}
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


def test_a_repeated_parameter_is_400_in_every_operation(nowhere: Client) -> None:
    accepted = []
    for method, path, operation in operations():
        url = re.sub(r"\{\w+\}", "1", path.replace("{cluster}", "local"))
        body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
        for name in query_parameters(operation):
            answer = getattr(nowhere, method)(f"{url}?{name}=1&{name}=0", **body)
            errors = answer.json().get("errors", {}) if answer.status_code == 400 else {}
            if list(errors) != [name] or errors[name] != ["The parameter must occur once."]:
                accepted.append(f"{method} {path} {name}: {answer.status_code} {errors}")
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


def test_every_write_to_a_cluster_has_a_dry_run() -> None:
    without = set()
    for method, path, operation in operations():
        if method != "get" and "dry_run" not in query_parameters(operation):
            without.add(path.removeprefix("/api/v1/clusters/{cluster}/"))
            assert "no dry run" in operation["description"], path
    assert without == WITHOUT_DRY_RUN


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_a_dry_run_of_a_creation_creates_nothing(kind: str, api: Api) -> None:
    answer = api("post", f"/{kind}?dry_run=1", {"name": "planned"})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["name"], body["dry_run"]) == ("planned", True)
    assert {(each["broker"], each["before"]) for each in body["changes"]} == {("broker-a", None)}
    api.get(f"/{kind}/planned", 404)
    assert not AuditRow.objects.exists()
    assert api("post", f"/{kind}?dry_run", {"name": "planned"}).status_code == 400
    api.get(f"/{kind}/planned", 404)
    assert api("post", f"/{kind}", {"name": "planned"}).status_code == 201
    assert api("post", f"/{kind}?dry_run=1", {"name": "planned"}).status_code == 409


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_a_dry_run_of_a_deletion_deletes_nothing(kind: str, api: Api) -> None:
    api("post", f"/{kind}", {"name": "kept"})
    written = AuditRow.objects.count()
    answer = api("delete", f"/{kind}/kept?dry_run=1")
    assert answer.status_code == 200, answer.content
    changes = answer.json()["changes"]
    assert {(each["broker"], each["after"]) for each in changes} == {("broker-a", None)}
    many = api("post", f"/{kind}:delete?dry_run=1", {"names": ["kept"]}).json()
    assert [each["result"] for each in many["results"]] == ["would"]
    api.get(f"/{kind}/kept")
    assert AuditRow.objects.count() == written
    assert api("delete", f"/{kind}/kept?dry_run=1", **{"If-Match": '"old"'}).status_code == 412
    api("put", f"/{kind}/kept/protection")
    assert api("delete", f"/{kind}/kept?dry_run=1").status_code == 409
    assert api("delete", f"/{kind}/no-such?dry_run=1").status_code == 404


def test_a_dry_run_of_a_bulk_change_and_of_a_message_changes_nothing(api: Api) -> None:
    api("post", "/topics", {"name": "kept"})
    body = {"names": ["kept"], "perm": 4}
    assert api("post", "/topics:update?dry_run=1", body).json()["results"][0]["result"] == "would"
    assert [each["perm"] for each in api.get("/topics/kept")["configs"]] == [6]
    answer = api("post", "/messages?dry_run=1", {"topic": "kept", "body": "x"})
    assert (answer.status_code, answer.json()) == (200, {"items": []})
    assert api.get("/messages?topic=kept")["total"] == 0
    draft = {"topic": "kept", "body": "x", "queue": "broker-a:99"}
    assert api("post", "/messages?dry_run=1", draft).status_code == 404


@pytest.mark.parametrize("digits", ["0" * 8 + "1" + "9" * 4, "0" * 8 + "1" + "9" * 5_000])
def test_a_number_has_a_limited_number_of_digits(digits: str, api: Api) -> None:
    for path in ("/topics?limit=", "/delayed-messages?limit=", "/delayed-messages?level="):
        assert api("get", f"{path}{digits}").status_code == 400, path
