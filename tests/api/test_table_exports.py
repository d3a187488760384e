"""Exports of lists: all rows in the list's order, no formulas in cells, permission."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from console.services.exports import tables
from console.services.exports.files import writer
from console.services.jobs import retry, runner, tasks
from console.services.jobs.models import Job
from console.services.jobs.states import State
from tests.api.conftest import Api, browser
from tests.api.stored import NASTY, RAW, Dead, numbered, routed_topic, store
from tests.api.test_feed import NOWHERE
from tests.api.test_pages import html
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"
#: Page of each list, and a filter value for lists with a filter.
LISTS = {
    "topics": ("topics/", "type=normal"),
    "groups": ("groups/", "show=behind"),
    "clients": ("clients/", "role=consumer"),
    "producers": ("producers/", ""),
    "dead-letters": ("dlq/", ""),
}


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> list[int]:
    """A task queue that accepts jobs without running them; contains the job numbers."""
    settings.GANTRY_HOME = tmp_path
    taken: list[int] = []
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(
        tasks.run_job, "apply_async", lambda arguments, retry: taken.append(arguments[0])
    )
    return taken


def exported(api: Api, **wish: Any) -> tuple[Job, bytes]:
    """Start an export, run the job in this process, fetch the file."""
    answer = api("post", "/exports", wish)
    assert answer.status_code == 202, answer.content
    number = answer.json()["job"]
    runner.run(number, notify=lambda job: None)
    job = Job.objects.get(pk=number)
    assert job.state == State.SUCCEEDED, job.error
    [file] = api.get(f"/jobs/{number}/files")["items"]
    got = api("get", f"/jobs/{number}/files/{file['name']}")
    return job, b"".join(got.streaming_content)


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.must_beat(36)
def test_the_list_of_topics_is_exported_as_it_is_shown(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PART_ROWS", 2)
    mark = traffic.topic("marked").removeprefix("marked-")
    names = [routed_topic(traffic, f"{mark}-{number}") for number in range(5)]
    for number, name in enumerate(names):
        store(traffic, *numbered(name, number))
    shown = poll(lambda: in_order(api, mark, [4, 3, 2, 1, 0]))
    job, data = exported(
        api, table="topics", q=f"{mark}-", ordering="-stored", filter="unspecified"
    )
    rows = lines(data)
    assert [row["name"] for row in rows] == [row["name"] for row in shown]
    assert [row["stored"] for row in rows] == [4, 3, 2, 1, 0]
    for row, item in zip(rows, shown, strict=True):
        assert (row["brokers"], row["perm"], row["groups"]) == (item["brokers"], item["perm"], [])
    assert rows[0]["last_write_ms"] == shown[0]["numbers"]["last_write_ms"]
    assert str(rows[0]["last_write"]).startswith("20")
    assert (rows[4]["last_write_ms"], rows[4]["last_write"]) == (None, None)
    assert (job.done, job.total) == (5, 5)
    assert job.outputs == {"rows": 5, "left_out": 0, "not_looked_at": 0, "silent_brokers": 0}
    entry = AuditRow.objects.get(action="table.export")
    assert (entry.target, entry.result) == ("topics", "done")
    job, data = exported(api, table="topics", q=f"{mark}-", most=3)
    assert len(lines(data)) == 3
    assert job.outputs["left_out"] == 2


def in_order(api: Api, mark: str, stored: list[int]) -> Any:
    """The items of the list, once the broker reports the expected counts."""
    items = api.get(f"/topics?q={mark}-&ordering=-stored&type=unspecified")["items"]
    told = [each["numbers"]["stored"] if each["numbers"] else None for each in items]
    return items if told == stored else None


@pytest.mark.must_beat(36)
def test_groups_clients_producers_and_dead_letters(api: Api, traffic: Traffic) -> None:
    dead = Dead(traffic, 2)
    poll(lambda: api.get(f"/dlq/{dead.group}")["count"] == 2)
    with traffic.consumer(dead.group, dead.topic):
        poll(lambda: api.get(f"/clients?q={dead.group}")["total"] == 1)
        poll(lambda: api.get(f"/groups?q={dead.group}")["total"] == 1)
        _job, data = exported(api, table="groups", q=dead.group)
        [group] = lines(data)
        assert (group["name"], group["retry_max"], group["is_cut"]) == (dead.group, 16, False)
        _job, data = exported(api, table="clients", q=dead.group, filter="consumer")
        [client] = lines(data)
        assert client["groups"] == {dead.group: client["groups"][dead.group]}
        assert dead.topic in client["groups"][dead.group]
        [sheet] = [
            row
            for row in csv_rows(exported(api, table="clients", q=dead.group, format="csv")[1])
            if dead.group in row["groups"]
        ]
        assert sheet["client_id"] == client["client_id"]
    _job, data = exported(api, table="dead-letters")
    [letters] = [row for row in lines(data) if row["group"] == dead.group]
    assert (letters["count"], letters["dealt_with"]) == (2, 0)
    assert letters["why_cause"] == "not_traced"
    exported(api, table="producers", format="xlsx")


def csv_rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


@pytest.mark.must_beat(36)
def test_without_the_permission_no_list_is_exported(reader: User, local: Cluster) -> None:
    viewer = browser(reader)
    for name, (page, _choice) in LISTS.items():
        assert Api(reader)("post", "/exports", {"table": name}).status_code == 403
        assert viewer.get(f"{HOME}/exports/{name}/").status_code == 403
        assert viewer.post(f"{HOME}/exports/{name}/", {"format": "csv"}).status_code == 403
        assert "/exports/" not in html(viewer, f"{HOME}/{page}")


@pytest.mark.parametrize("name", LISTS)
def test_the_button_keeps_what_the_list_shows(page: Client, dead: Dead, name: str) -> None:
    path, choice = LISTS[name]
    text = html(page, f"{HOME}/{path}?q=o&ordering=-name&page=2&{choice}")
    assert f'href="{HOME}/exports/{name}/?q=o&amp;ordering=-name' in text
    assert "page=2" not in text.partition(f"/exports/{name}/")[2].partition('"')[0]
    form = html(page, f"{HOME}/exports/{name}/?q=o&ordering=-name&{choice}")
    if name != "dead-letters":
        assert '<option value="-name" selected>' in form
        assert 'name="q" value="o"' in form
    if choice:
        assert f'<option value="{choice.partition("=")[2]}" selected>' in form
    answer = page.post(
        f"{HOME}/exports/{name}/", {"format": "csv", "most": "10", "ordering": "name"}
    )
    assert answer.status_code == 302
    again = page.post(f"{HOME}/exports/{name}/", {"format": "csv", "most": "9", "ordering": "name"})
    assert again.headers["Location"] == answer.headers["Location"], "one of a list at a time"
    assert "Export a list" in html(page, answer.headers["Location"])


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic, 1)


def test_no_cell_of_a_list_is_a_formula() -> None:
    row = {
        "name": "=1+1",
        "lag": -1,
        "rate": 0.5,
        "since": None,
        "topics": ["@a", "b"],
        "cut": False,
    }
    file = io.BytesIO()
    with writer("csv", file, list(row), cut="cut") as writing:
        writing.write(row)
    [told] = csv_rows(file.getvalue())
    assert (told["name"], told["topics"]) == ("'=1+1", "'@a b")
    assert (told["lag"], told["rate"], told["since"]) == ("-1", "0.5", "")
    file = io.BytesIO()
    with writer("xlsx", file, list(row), cut="cut") as writing:
        writing.write({**row, "topics": ["x" * 40_000]})
    with zipfile.ZipFile(file) as archive:
        inside = archive.read("xl/worksheets/sheet1.xml")
    assert b"<f>" not in inside
    assert b"<v>-1</v>" in inside
    assert b'"F2" t="b"><v>1</v>' in inside, "says that a text was cut"


def test_a_cluster_that_stays_away_fails_the_job_with_its_reason(
    api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_DELAY_S", 0.0)
    number = api("post", "/exports", {"table": "topics"}).json()["job"]
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    runner.run(number, notify=lambda job: None)
    job = Job.objects.get(pk=number)
    assert job.state == State.FAILED
    assert NOWHERE in job.error


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"table": "users"},
        {"table": "topics", "ordering": "nosuch"},
        {"table": "topics", "filter": "behind"},
        {"table": "producers", "filter": "x"},
        {"table": "dead-letters", "q": "x"},
        {"table": "dead-letters", "ordering": "-count"},
        {"table": "topics", "q": "q" * 513},
        {"table": "topics", "format": "exe"},
        {"table": "topics", "most": 10**9},
        {"table": "topics", "most": 10**6, "format": "xlsx"},
        {"table": "topics", "x": 1},
    ],
)
def test_what_cannot_be_exported_is_refused(
    api: Api, wish: dict[str, Any], queue: list[int]
) -> None:
    assert api("post", "/exports", wish).status_code == 400
    assert queue == []


def test_a_hostile_address_or_form_is_shown_and_never_run(page: Client, queue: list[int]) -> None:
    path = f"{HOME}/exports/topics/"
    asked = {"q": NASTY + "\x00", "ordering": NASTY, "type": NASTY}
    answers = [page.get(path, asked), page.post(path, {**asked, "format": NASTY, "most": "-1"})]
    assert [each.status_code for each in answers] == [200, 422]
    for each in answers:
        assert not any(raw in each.content for raw in RAW)
    assert page.get(f"{HOME}/exports/%3Cscript%3E/").status_code == 404
    assert queue == []
