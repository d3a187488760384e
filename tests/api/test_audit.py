"""The audit log: every change and every denied request leaves a correct, immutable row."""

import csv
import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from console.audit.changes import Value, changes_of
from console.audit.models import AuditRow, RowsStay
from console.audit.recording import audited_as
from console.audit.retention import prune
from tests.api.conftest import Api, browser
from tests.support.cluster import Cluster

CONSOLE = Path(__file__).resolve().parents[2] / "console"


def rows(**wanted: Any) -> list[Any]:
    return list(AuditRow.objects.filter(**wanted).order_by("pk"))


@pytest.mark.must_beat(18)
def test_a_topic_deleted_by_two_users_one_of_them_denied(
    staff: User, operator: User, local: Cluster
) -> None:
    assert Api(staff)("post", "/topics", {"name": "audited"}).status_code == 201
    refused = Api(operator)("delete", "/topics/audited")
    assert refused.status_code == 403
    assert "Administrator" in refused.json()["detail"]
    assert (
        Api(staff)("delete", "/topics/audited", **{"X-Request-ID": "by-proxy-1"}).status_code == 200
    )
    denied, done = rows(action="topic.delete")
    assert (denied.username, denied.result, denied.target) == ("operator", "denied", "audited")
    assert (done.username, done.result, done.target) == ("staff", "done", "audited")
    assert (done.cluster, done.via, done.source) == ("local", "api", "127.0.0.1")
    assert done.request_id == "by-proxy-1"
    assert done.before["broker-a"]["writeQueueNums"] == 8
    assert [each["error"] for each in done.outcomes["items"]] == [None]
    assert done.finished_at >= done.at


def test_a_page_leaves_the_same_row_and_a_refused_form_too(
    operator: User, reader: User, local: Cluster
) -> None:
    form = {
        "name": "by-page",
        "write_queues": 2,
        "read_queues": 2,
        "perm": 6,
        "brokers": "broker-a",
    }
    created = browser(operator).post("/clusters/local/create-topic/", form)
    assert created.status_code == 302, created.content
    assert browser(reader).post("/clusters/local/create-topic/", form).status_code == 403
    done, denied = rows(action="topic.create")
    assert (done.result, done.via, done.role) == ("done", "page", "operator")
    assert done.after["write_queues"] == 2
    assert (denied.result, denied.role, denied.reason) == ("denied", "viewer", "needs topics:write")


def test_the_states_of_a_change_compare_field_by_field(
    api: Api, staff: User, local: Cluster
) -> None:
    assert api("post", "/topics", {"name": "compared", "write_queues": 4}).status_code == 201
    assert api("patch", "/topics/compared", {"write_queues": 6}).status_code == 200
    row = rows(action="topic.update", target="compared")[-1]
    fields = changes_of(row.before, row.after).fields
    assert [(each.path, each.before, each.after) for each in fields] == [
        (("broker-a", "writeQueueNums"), Value("4"), Value("6"))
    ]
    shown = browser(staff).get(f"/audit/{row.pk}/").content.decode()
    assert "<del>4</del>" in shown
    assert "<ins>6</ins>" in shown


def test_what_the_cluster_refuses_is_a_failed_row_with_its_reason(api: Api) -> None:
    api("post", "/topics", {"name": "twice"})
    assert api("post", "/topics", {"name": "twice"}).status_code == 409
    assert [row.result for row in rows(action="topic.create")] == ["done", "failed"]
    assert "twice" in rows(result="failed")[0].reason


def test_a_result_per_item_is_counted_and_the_failed_ones_are_kept_first(db: None) -> None:
    items = [{"id": n, "result": "failed" if n == 900 else "sent"} for n in range(1_000)]
    with audited_as(None, "deadletter.resend", cluster="c", target="g") as entry:
        entry.outcomes(items)
    (row,) = rows()
    assert row.result == "partly"
    assert (row.outcomes["total"], row.outcomes["failed"]) == (1_000, 1)
    assert row.outcomes["items"][0]["id"] == 900
    assert len(row.outcomes["items"]) == 200


def test_an_act_that_raises_is_failed_and_goes_on_raising(staff: User) -> None:
    def act() -> None:
        with audited_as(staff, "job.replay", target="g"):
            assert rows()[0].result == "begun", "the row is there before the act"
            raise ValueError("broken \x00 pipe")

    with pytest.raises(ValueError, match="broken"):
        act()
    (row,) = rows()
    assert (row.username, row.via, row.result) == ("staff", "job", "failed")
    assert row.reason == "broken � pipe"


def test_secrets_and_endless_states_are_not_kept(db: None) -> None:
    before = {
        "accessKey": "AK", "secretKey": "SK", "sslKeyStorePass": "", "enableTokenCheck": True,
        "nested": [{"password": "pw", "brokerName": "a"}], "long": "x" * 100_000,
    }  # fmt: skip
    with audited_as(None, "broker.configure", before=dict(before, long="")) as entry:
        entry.after = before
    (row,) = rows()
    assert row.before["accessKey"] == row.before["secretKey"] == "***"
    assert row.before["nested"] == [{"password": "***", "brokerName": "a"}]
    assert row.before["enableTokenCheck"] is True
    assert len(row.after["text"]) == row.after["cut_to_characters"] == 20_000
    assert not re.search("AK|SK|pw", json.dumps([row.before, row.after]).replace("SecretKey", ""))


@pytest.mark.must_beat(18)
def test_nothing_edits_or_deletes_a_row(db: None) -> None:
    with audited_as(None, "topic.delete"):
        pass
    (row,) = rows()
    for attempt in (
        row.save, row.delete, AuditRow.objects.all().delete, AuditRow.objects.all().bulk_update,
        lambda: AuditRow.objects.filter(pk=row.pk).update(username="somebody else"),
        lambda: AuditRow.objects.bulk_create([AuditRow()]),
    ):  # fmt: skip
        with pytest.raises(RowsStay):
            attempt()
    users = [
        str(path.relative_to(CONSOLE))
        for path in CONSOLE.rglob("*.py")
        if re.search(r"AuditRow\.house|audit_auditrow", path.read_text(encoding="utf-8"))
        and "migrations" not in path.parts
    ]
    assert set(users) == {"audit/recording.py", "audit/retention.py"}


def test_a_completed_row_is_completed_once(db: None) -> None:
    with audited_as(None, "topic.delete") as entry:
        pass
    entry.failed("later")
    entry.complete()
    assert rows()[0].result == "done"


def test_the_rows_of_an_account_outlive_it(operator: User, staff: User) -> None:
    with audited_as(operator, "topic.create"):
        pass
    operator.delete()
    assert rows()[0].username == "operator"


def test_old_rows_go_by_age_and_number_and_denials_push_nothing_out(
    db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AUDIT_DAYS, settings.AUDIT_ROWS_MAX = 30, 5
    monkeypatch.setattr("console.audit.retention.DENIED_ROWS_MAX", 2)
    for number in range(8):
        with audited_as(None, f"act.{number}"):
            pass
    old, *_ = rows()
    AuditRow.house.filter(pk=old.pk).update(at=timezone.now() - timedelta(days=31))
    for _ in range(4):
        AuditRow(at=timezone.now(), action="x", result="denied").save()
    assert prune() == 1 + 2 + 2
    assert [row.action for row in rows(result="done")] == [f"act.{n}" for n in range(3, 8)]
    assert len(rows(result="denied")) == 2


def downloaded(client: Client, path: str) -> bytes:
    answer: Any = client.get(path)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    return b"".join(answer.streaming_content)


def filled(staff: User) -> None:
    for number in range(120):
        with audited_as(staff, "topic.delete", cluster="local", target=f"=cmd-{number}"):
            pass


def test_the_page_filters_walks_and_exports(staff: User, local: Cluster) -> None:
    filled(staff)
    client = browser(staff)
    first = client.get("/audit/?target=cmd-1").content.decode()
    assert "cmd-119" in first
    assert "cmd-20" not in first
    everything = client.get("/audit/").content.decode()
    older = re.search(r'rel="next" href="\?(before=\d+)"', everything)
    assert older is not None
    assert "cmd-69<" in client.get(f"/audit/?{older[1]}").content.decode()
    number = rows()[0].pk
    assert "topic.delete" in client.get(f"/audit/{number}/").content.decode()
    assert client.get(f"/audit/{10**30}/").status_code == 404
    lines = downloaded(client, "/audit/export/jsonl?target=cmd-11")
    assert [json.loads(line)["target"] for line in lines.splitlines()][-1] == "=cmd-11"
    table = downloaded(client, "/audit/export/csv?target=cmd-7").decode()
    found = list(csv.DictReader(StringIO(table)))
    assert found[-1]["target"] == "'=cmd-7", "no spreadsheet takes it for a formula"
    assert client.get("/audit/export/exe").status_code == 404


@pytest.mark.parametrize(
    "query",
    ["since=soon", "until=99999-01-01", "result=great", "since=0000-00-00T00:00", "since=9" * 30],
)
def test_a_filter_that_means_nothing_is_told(query: str, staff: User, local: Cluster) -> None:
    assert browser(staff).get(f"/audit/?{query}").status_code == 400
    answer = Api(staff).client.get(f"/api/v1/audit?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [query.partition("=")[0]]


@pytest.mark.parametrize(
    "query", ["target=%00", "before=x", "username=%F0%9F%90%8D", "q=" + "x" * 9_000]
)
def test_strange_filters_do_no_harm(query: str, staff: User, local: Cluster) -> None:
    assert browser(staff).get(f"/audit/?{query}").status_code == 200


def test_the_api_walks_by_cursor(staff: User, local: Cluster) -> None:
    filled(staff)
    client, seen, cursor = Api(staff).client, [], ""
    while True:
        answer = client.get(f"/api/v1/audit?limit=50&action=topic.delete&cursor={cursor}").json()
        seen += [row["id"] for row in answer["items"]]
        assert answer["total"] == 120
        if answer["next_cursor"] is None:
            break
        cursor = answer["next_cursor"]
    assert len(seen) == len(set(seen)) == 120
    assert client.get(f"/api/v1/audit/{seen[0]}").json()["target"] == "=cmd-119"
    assert client.get("/api/v1/audit/999999999").status_code == 404


def test_only_administrators_see_it(operator: User, local: Cluster) -> None:
    assert browser(operator).get("/audit/").status_code == 403
    assert Api(operator).client.get("/api/v1/audit").status_code == 403
    assert {row.result for row in rows()} == {"denied"}
    assert "/audit/" not in browser(operator).get("/clusters/local/topics/").content.decode()


def test_the_number_of_a_row_is_never_given_again(db: None) -> None:
    for _ in range(2):
        with audited_as(None, "x"):
            pass
    last = rows()[-1].pk
    AuditRow.house.filter(pk=last).delete()
    with audited_as(None, "y"):
        pass
    assert rows()[-1].pk > last
