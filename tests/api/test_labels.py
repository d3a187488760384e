"""Labels of topics and groups: REST resource, lists, deletion, definitions."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from console.areas.definitions import labels as definitions_labels
from console.audit.models import AuditRow
from console.resources import labels
from console.resources.models import Kind, LabelSet
from tests.api.conftest import Api, browser
from tests.api.test_definitions import HEAD, post, results
from tests.api.test_roles import member
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

OWNED = {"owner": "ann", "tier": "gold"}


def made(api: Api, traffic: Traffic, kind: str, name: str = "labeled") -> str:
    """Create an object and return its path."""
    found = traffic.topic(name) if kind == "topics" else traffic.group(name)
    path = f"/{kind}/{found}"
    poll(lambda: api("get", path).status_code == 200)
    return path


def put(api: Api, path: str, given: Any, query: str = "", **headers: str) -> Any:
    return api("put", f"{path}/labels{query}", {"labels": given}, **headers)


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_labels_are_put_read_and_deleted(api: Api, traffic: Traffic, kind: str) -> None:
    path = made(api, traffic, kind)
    name = path.rpartition("/")[2]
    assert api.get(f"{path}/labels") == {"name": name, "labels": {}}
    dry = put(api, path, OWNED, "?dry_run=true").json()
    assert dry["changes"] == [
        {"broker": "", "field": "owner", "before": None, "after": "ann"},
        {"broker": "", "field": "tier", "before": None, "after": "gold"},
    ]
    assert (dry["dry_run"], dry["labels"]) == (True, OWNED)
    assert api.get(path)["labels"] == {}
    done = put(api, path, OWNED)
    assert done.status_code == 200, done.content
    assert done.json() == {"name": name, "labels": OWNED}
    assert api.get(path)["labels"] == api.get(f"{path}/labels")["labels"] == OWNED
    items = api.get(f"/{kind}?q={name}")["items"]
    assert [each["labels"] for each in items if each["name"] == name] == [OWNED]
    assert put(api, path, {"owner": "bob"}).json()["labels"] == {"owner": "bob"}
    tried = api("delete", f"{path}/labels?dry_run=true").json()
    assert [(one["field"], one["after"]) for one in tried["changes"]] == [("owner", None)]
    assert api("delete", f"{path}/labels").status_code == 204
    assert api("delete", f"{path}/labels").status_code == 204
    assert api.get(f"{path}/labels")["labels"] == {}
    assert not LabelSet.objects.exists()
    rows = AuditRow.objects.filter(target=name, action__endswith="label").order_by("pk")
    told = [(row.action, row.before, row.after) for row in rows]
    one = kind.removesuffix("s")
    assert told[:2] == [
        (f"{one}.label", {}, OWNED),
        (f"{one}.label", OWNED, {"owner": "bob"}),
    ]
    assert told[2][:2] == (f"{one}.unlabel", {"owner": "bob"})


def test_a_change_with_an_old_etag_is_refused(api: Api, traffic: Traffic) -> None:
    path = made(api, traffic, "topics")
    first = api("get", f"{path}/labels").headers["ETag"]
    second = put(api, path, OWNED, **{"If-Match": first}).headers["ETag"]
    assert second == api("get", f"{path}/labels").headers["ETag"] != first
    for query in ("", "?dry_run=1"):
        assert put(api, path, {"a": "b"}, query, **{"If-Match": first}).status_code == 412
        stale = api("delete", f"{path}/labels{query}", **{"If-Match": first})
        assert stale.status_code == 412
    assert api.get(path)["labels"] == OWNED
    assert api("delete", f"{path}/labels", **{"If-Match": second}).status_code == 204


def test_a_repeated_request_is_carried_out_once(api: Api, traffic: Traffic) -> None:
    path, key = made(api, traffic, "groups"), {"Idempotency-Key": "once"}
    put(api, path, OWNED, **key)
    put(api, path, {"owner": "bob"})
    again = put(api, path, OWNED, **key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["labels"] == OWNED
    assert api.get(path)["labels"] == {"owner": "bob"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"labels": None},
        {"labels": []},
        {"labels": "owner"},
        {"labels": {"Owner": "ann"}},
        {"labels": {"\ud800": "ann"}},
        {"labels": {"owner": "\ud800"}},
        {"labels": {"owner": "a\x00b"}},
        {"labels": {"owner": 1}},
        {"labels": {"owner": {"a": "b"}}},
        {"labels": {f"k{number}": "v" for number in range(17)}},
        {"labels": {"k" * 5_000: "v"}},
        {"labels": {}, "more": 1},
    ],
)
def test_a_wrong_body_is_400_and_changes_nothing(api: Api, traffic: Traffic, body: Any) -> None:
    path = made(api, traffic, "topics")
    put(api, path, OWNED)
    answer = api("put", f"{path}/labels", body)
    assert answer.status_code == 400, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert len(answer.content) < 2_000
    assert api.get(path)["labels"] == OWNED


@pytest.mark.parametrize("name", ["absent", "%00", "a%00b", "~", "%F0%9F%98%80", "n" * 300])
@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_an_object_that_does_not_exist_has_no_labels(api: Api, kind: str, name: str) -> None:
    path = f"/{kind}/{name}"
    assert api("get", f"{path}/labels").status_code == 404
    assert put(api, path, OWNED).status_code == 404
    assert api("delete", f"{path}/labels").status_code == 404
    assert not LabelSet.objects.exists()


def test_who_may_write_a_name_may_label_it(api: Api, traffic: Traffic, operator: User) -> None:
    mine, other = made(api, traffic, "topics", "pay"), made(api, traffic, "topics", "closed")
    limited = Api(member("pat", "topics:write:pay-*", "topics:read:*"))
    assert put(limited, mine, OWNED).status_code == 200
    for path in (other, made(api, traffic, "groups", "pay")):
        assert put(limited, path, OWNED).status_code == 403
        assert api("get", f"{path}/labels").json()["labels"] == {}
        assert limited("delete", f"{path}/labels").status_code == 403
    assert put(Api(operator), other, OWNED).status_code == 200
    blind = Api(member("quinn", "topics:read:pay-*"))
    assert blind.get(mine)["labels"] == OWNED
    assert blind("get", f"{other}/labels").status_code == 403
    assert put(blind, mine, {}).status_code == 403
    assert "gold" not in str(blind.get("/topics?q=closed"))


def test_a_read_only_cluster_refuses_labels(api: Api, traffic: Traffic) -> None:
    path = made(api, traffic, "topics")
    assert api("put", "/read-only", {"reason": "audit"}).status_code == 200
    assert put(api, path, OWNED).status_code == 403
    assert api("delete", f"{path}/labels").status_code == 403
    assert api.get(f"{path}/labels")["labels"] == {}


def test_a_deletion_takes_the_labels(api: Api, traffic: Traffic, staff: User) -> None:
    paths = [made(api, traffic, "topics") for _ in range(3)] + [made(api, traffic, "groups")]
    kept = made(api, traffic, "topics", "kept")
    for path in (*paths, kept):
        assert put(api, path, OWNED).status_code == 200
    names = [path.rpartition("/")[2] for path in paths]
    api("put", f"{kept}/protection")
    assert api("delete", f"{kept}").status_code == 409
    assert api("delete", f"{paths[0]}?dry_run=1").status_code == 200
    assert LabelSet.objects.count() == 5
    assert api("delete", paths[0]).status_code == 200
    assert api("post", "/topics:delete", {"names": names[1:2]}).json()["done"] == 1
    sure = {"typed_name": names[2], "etag": ""}
    page = browser(staff).post(f"/clusters/local/topics/{names[2]}/delete/", sure)
    assert page.status_code == 302, page.content
    assert api("delete", paths[3]).status_code == 200
    assert LabelSet.objects.get().name == kept.rpartition("/")[2]


def test_labels_of_a_deleted_object_can_be_deleted(api: Api, traffic: Traffic) -> None:
    labels.change("local", Kind.TOPIC, "left", "staff", lambda _held: OWNED)
    assert api("get", "/topics/left/labels").status_code == 404
    assert api("delete", "/topics/left/labels").status_code == 204
    assert not LabelSet.objects.exists()


def test_objects_with_labels_are_bounded(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "LABELED_MAX", 1)
    first, second = made(api, traffic, "topics"), made(api, traffic, "topics")
    assert put(api, first, OWNED).status_code == 200
    assert put(api, second, OWNED).status_code == 409
    assert put(api, first, {"owner": "bob"}).status_code == 200
    assert put(api, first, {}).json()["labels"] == {}
    assert put(api, second, OWNED).status_code == 200


def test_a_page_of_a_list_reads_the_labels_with_one_query(api: Api, traffic: Traffic) -> None:
    for _ in range(4):
        put(api, made(api, traffic, "topics"), OWNED)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        items = api.get("/topics?q=labeled")["items"]
    assert sum(each["labels"] == OWNED for each in items) == 4
    assert sum("labelset" in each["sql"] for each in seen.captured_queries) == 1


def test_definitions_carry_labels_to_another_cluster(
    api: Api, traffic: Traffic, local: Cluster, settings: Settings
) -> None:
    topic, group = made(api, traffic, "topics"), made(api, traffic, "groups")
    put(api, topic, OWNED)
    put(api, group, {"owner": "bob"})
    topic, group = (path.rpartition("/")[2] for path in (topic, group))
    text = api.get("/definitions")["definitions"]
    assert f"{topic}:\n      owner: ann\n      tier: gold\n" in text
    assert not post(api, text, query="?dry_run=1")["drift"]
    settings.CONSOLE_CLUSTERS = {"local": local.namesrv_addr, "other": local.namesrv_addr}
    labels.change("other", Kind.TOPIC, topic, "staff", lambda _held: {"tier": "tin", "own": "x"})
    labels.change("other", Kind.GROUP, "extra", "staff", lambda _held: OWNED)
    copied = {"from_cluster": "local"}
    other = "/api/v1/clusters/other/definitions"
    for query, words in (("?dry_run=1", "would "), ("", "")):
        answer = api.client.post(f"{other}{query}", copied, content_type="application/json")
        assert answer.status_code == 200, answer.content
        items = {each["name"]: each for each in answer.json()["items"] if each["kind"] == "labels"}
        found = {name: each["result"].removeprefix(words) for name, each in items.items()}
        updated, created = ("update", "create") if words else ("updated", "created")
        assert found == {
            f"topics/{topic}": updated,
            f"groups/{group}": created,
            "groups/extra": "extra",
        }
        changes = [
            (one["field"], one["before"], one["after"])
            for one in items[f"topics/{topic}"]["changes"]
        ]
        assert changes == [("owner", None, "ann"), ("tier", "tin", "gold")]
    assert labels.labels_of("other", Kind.TOPIC, topic) == {**OWNED, "own": "x"}
    assert labels.labels_of("other", Kind.GROUP, group) == {"owner": "bob"}


@pytest.mark.parametrize(
    "tail", ["", "x" * definitions_labels.KEPT_CHARS_MAX], ids=["kept", "long"]
)
def test_definitions_show_labels_that_another_console_changed(
    api: Api, traffic: Traffic, tail: str
) -> None:
    names = [made(api, traffic, "topics").rpartition("/")[2] for _ in range(2)]
    for owners in (("ann", "bob"), ("bob", "ann"), ("carl", "carl")):
        for name, owner in zip(names, owners, strict=True):
            stored = {"tier": "gold", "owner": owner, "notes": f"a: b{tail}"}
            row = {"changed_ms": 1, "changed_by": "pat", "labels": stored}
            key = {"cluster": "local", "kind": Kind.TOPIC, "name": name}
            LabelSet.objects.update_or_create(row, **key)
        text = api.get("/definitions")["definitions"]
        for name, owner in zip(names, owners, strict=True):
            lines = f'      notes: "a: b{tail}"\n      owner: {owner}\n      tier: gold\n'
            assert f"    {name}:\n{lines}" in text
    LabelSet.objects.all().delete()
    assert "labels:" not in api.get("/definitions")["definitions"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("labels: [a]", "maps of labels"),
        ("labels: {brokers: {}}", "maps of labels"),
        ("labels: {topics: [a]}", "no map of names"),
        ("labels: {topics: {a: b}}", "no map of names"),
    ],
)
def test_a_wrong_section_is_told(api: Api, text: str, told: str) -> None:
    assert told in post(api, f"{HEAD}{text}\n", 400)["detail"]


def test_wrong_labels_of_a_document_fail_alone(api: Api, traffic: Traffic) -> None:
    topic = made(api, traffic, "topics").rpartition("/")[2]
    text = (
        f"{HEAD}labels:\n  topics:\n    {topic}: {{tier: 1}}\n    upper: {{Owner: a}}\n"
        '    blank: {owner: ""}\n    nested: {owner: {a: b}}\n    "a\\0b": {owner: ann}\n'
        f"    {'n' * 256}: {{owner: ann}}\n"
    )
    found = results(post(api, text, 207))
    assert found.pop(f"topics/{topic}") == "created"
    assert set(found.values()) <= {"failed", "extra"}
    assert LabelSet.objects.get().labels == {"tier": "1"}


def test_a_document_labels_only_what_its_user_may_write(api: Api, traffic: Traffic) -> None:
    mine, other = made(api, traffic, "topics", "pay"), made(api, traffic, "topics", "closed")
    put(api, other, OWNED)
    mine, other = (path.rpartition("/")[2] for path in (mine, other))
    limited = Api(member("pat", "definitions:admin", "topics:read:pay-*"))
    assert other not in limited.get("/definitions")["definitions"]
    text = f"{HEAD}labels:\n  topics:\n    {mine}: {{a: b}}\n    {other}: {{a: b}}\n"
    assert set(results(post(limited, text, 207)).values()) == {"failed"}
    assert labels.labels_of("local", Kind.TOPIC, mine) == {}
    writer = Api(member("quinn", "definitions:admin", "topics:write:pay-*", "topics:read:pay-*"))
    done = results(post(writer, text, 207))
    assert done == {f"topics/{mine}": "created", f"topics/{other}": "failed"}
