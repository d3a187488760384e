"""Conventions of all resources: the OpenAPI document, problems, idempotency keys."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from console.api.models import KeptAnswer
from console.api.operations import RENAMED, SUMMARY_CHARS_MAX, VERBS
from console.audit.models import AuditRow
from console.gateway import gateway
from tests.api.conftest import API, Api
from tests.support.cluster import Cluster

PROBLEM = "application/problem+json"
KEY = {"Idempotency-Key": "made-once"}
pytestmark = pytest.mark.must_beat(28)


@pytest.fixture
def document(client: Client, db: None) -> dict[str, Any]:
    answer = client.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.content)
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_document_is_valid_openapi_3_with_a_name_for_every_operation(
    document: dict[str, Any],
) -> None:
    validate_schema(document)
    assert document["openapi"].startswith("3.")
    names = [operation["operationId"] for _name, operation in operations(document)]
    assert len(names) == len(set(names))


def test_every_operation_has_a_verb_and_a_noun_for_sdks_and_a_summary(
    document: dict[str, Any],
) -> None:
    poor = []
    for name, operation in operations(document):
        named, summary = operation["operationId"], operation.get("summary", "")
        if named.partition("_")[0] not in VERBS or not re.fullmatch(
            r"[a-z0-9]+(_[a-z0-9]+)*", named
        ):
            poor.append(f"{name}: {named} does not begin with a verb of operations.VERBS")
        if not summary or len(summary) > SUMMARY_CHARS_MAX or summary.endswith("."):
            poor.append(f"{name}: no summary of one line: {summary!r}")
    assert not poor
    names = {operation["operationId"] for _name, operation in operations(document)}
    assert not set(RENAMED) & (names - set(RENAMED.values())), "a default name got out"
    assert not set(RENAMED.values()) - names, "a name in RENAMED has no operation"


def test_the_document_is_generated_without_a_warning() -> None:
    # For example two schemas of the same name, of which the document would contain one.
    GENERATOR_STATS.reset()
    with GENERATOR_STATS.silence():
        SchemaGenerator().get_schema(public=True)
    said = [
        str(each)
        for cache in (GENERATOR_STATS._warn_cache, GENERATOR_STATS._error_cache)
        for each in cache
    ]
    assert not said


def test_every_operation_has_a_sentence_examples_and_its_problems(document: dict[str, Any]) -> None:
    poor = []
    for name, operation in operations(document):
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [answer.get("content", {}) for answer in operation["responses"].values()]
        for kind, media in (pair for content in contents for pair in content.items()):
            if kind != PROBLEM and "example" not in media and "examples" not in media:
                poor.append(f"{name}: no example of {kind}")
        if not operation.get("description"):
            poor.append(f"{name}: no sentence")
        missing = {"401", "403", "404", "503"} - set(operation["responses"])
        if missing:
            poor.append(f"{name}: does not tell of {missing}")
    assert not poor


def test_the_try_it_page_loads_nothing_from_elsewhere(client: Client, db: None) -> None:
    answer = client.get("/api/docs/")
    assert answer.status_code == 200
    assert b"swagger-ui" in answer.content
    assert b"//cdn" not in answer.content
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


JSON = "application/json"


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("get", f"{API}/topics/no-such-topic", {}, 404),
        ("get", "/api/v1/clusters/nowhere/topics", {}, 404),
        ("get", "/api/v1/nothing/here", {}, 404),
        ("put", f"{API}/topics", {}, 405),
        ("get", f"{API}/topics", {"headers": {"Accept": "text/html"}}, 406),
        ("post", f"{API}/topics", {"data": "x=1", "content_type": "text/plain"}, 415),
        ("post", f"{API}/topics", {"data": "{", "content_type": JSON}, 400),
        ("post", f"{API}/topics", {"data": "[]", "content_type": JSON}, 400),
        ("post", f"{API}/topics", {"data": b"\xff\xfe", "content_type": JSON}, 400),
        ("post", f"{API}/topics", {"data": b" " * 5_000_000, "content_type": JSON}, 413),
        ("post", f"{API}/topics", {"data": "[" * 99_999, "content_type": JSON}, 400),
        ("get", f"{API}/topics?limit=0", {}, 400),
        ("get", f"{API}/topics?cursor=%00", {}, 400),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_a_problem_with_its_true_status(
    method: str, path: str, more: dict[str, Any], status: int, api: Api
) -> None:
    answer = getattr(api.client, method)(path, **more)
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == PROBLEM
    body = answer.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:gantry:problem:")
    assert body["title"]
    assert body["detail"]


def test_a_host_that_is_not_ours_is_a_problem_too(api: Api, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["console.example.org"]
    answer = api.client.get(f"{API}/topics", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, PROBLEM)


def test_a_write_that_is_sent_twice_is_done_once(api: Api) -> None:
    body = {"name": "once", "write_queues": 2}
    first = api("post", "/topics", body, **KEY)
    assert first.status_code == 201
    again = api("post", "/topics", body, **KEY)
    assert again.status_code == 201, "not 409: it is the first answer"
    assert again.json() == first.json()
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert AuditRow.objects.filter(action="topic.create").count() == 1


def test_a_problem_is_kept_too(api: Api) -> None:
    first = api("post", "/topics", {"name": "bad name"}, **KEY)
    again = api("post", "/topics", {"name": "bad name"}, **KEY)
    assert first.status_code == again.status_code == 400
    assert again.json() == first.json()
    assert again.headers["Content-Type"] == PROBLEM


def test_a_key_belongs_to_one_request_of_one_account(api: Api, operator: User) -> None:
    assert api("post", "/topics", {"name": "mine"}, **KEY).status_code == 201
    assert api("post", "/topics", {"name": "other"}, **KEY).status_code == 422
    assert api("post", "/groups", {"name": "mine"}, **KEY).status_code == 422
    assert Api(operator)("post", "/topics", {"name": "theirs"}, **KEY).status_code == 201
    assert api("get", "/topics", **KEY).status_code == 200, "a read has no use for it"


def test_a_request_under_way_is_not_begun_again(api: Api) -> None:
    api("post", "/topics", {"name": "slow"}, **KEY)
    KeptAnswer.objects.update(status=None, body=None)
    answer = api("post", "/topics", {"name": "slow"}, **KEY)
    assert answer.status_code == 409
    assert answer.headers["Retry-After"] == "1"


def test_a_request_that_the_cluster_could_not_take_may_be_repeated(api: Api, settings: Any) -> None:
    address = settings.CONSOLE_CLUSTERS["local"]
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    assert api("post", "/topics", {"name": "later"}, **KEY).status_code == 503
    settings.CONSOLE_CLUSTERS = {"local": address}
    gateway.close()
    assert api("post", "/topics", {"name": "later"}, **KEY).status_code == 201


def test_keys_are_kept_for_a_day_and_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api("post", "/topics", {"name": "day"}, **KEY)
    KeptAnswer.objects.update(at=timezone.now() - timedelta(hours=25))
    assert api("post", "/topics", {"name": "day"}, **KEY).status_code == 409, "done again: taken"
    monkeypatch.setattr("console.api.idempotency.KEPT_ANSWERS_MAX", 1)
    answer = api("post", "/topics", {"name": "full"}, **{"Idempotency-Key": "another"})
    assert answer.status_code == 503


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "ключ"])
def test_a_key_that_is_none_is_refused(key: str, api: Api) -> None:
    answer = api("post", "/topics", {"name": "x"}, **{"Idempotency-Key": key})
    assert answer.status_code == 400
    assert not KeptAnswer.objects.exists()


def test_a_refused_request_takes_no_key(reader: User, local: Cluster) -> None:
    assert Api(reader)("post", "/topics", {"name": "x"}, **KEY).status_code == 403
    assert not KeptAnswer.objects.exists()
