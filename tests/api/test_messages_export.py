"""Exports of messages: permission, background job, completeness, no formulas in cells."""

import base64
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

from console.areas.messages import export
from console.services.jobs import ledger, retry, runner, tasks
from console.services.jobs.models import Job
from console.services.jobs.states import State
from core_broker.message.model import Message
from tests.api.conftest import API, Api, browser
from tests.api.stored import NASTY, RAW, numbered, routed_topic, store
from tests.api.test_feed import NOWHERE
from tests.api.test_pages import html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

PAGE = "/clusters/local/messages/export/"
MANY = 100_000


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


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "exported")


def exported(api: Api, **wish: Any) -> tuple[Job, bytes]:
    """Start an export, run the job in this process, fetch the file."""
    answer = api("post", "/messages/exports", wish)
    assert answer.status_code == 202, answer.content
    number = answer.json()["job"]
    runner.run(number, notify=lambda job: None)
    job = Job.objects.get(pk=number)
    assert job.state == State.SUCCEEDED, job.error
    [file] = api.get(f"/jobs/{number}/files")["items"]
    got: Any = api.client.get(f"{API}/jobs/{number}/files/{file['name']}")
    return job, b"".join(got.streaming_content)


@pytest.mark.must_beat(36)
@pytest.mark.timeout(240)
def test_a_hundred_thousand_rows_finish_in_the_background(
    api: Api, traffic: Traffic, topic: str
) -> None:
    traffic.send_many(topic, (b"%d" % number for number in range(MANY)))
    job, data = exported(api, topic=topic, most=MANY)
    bodies = [json.loads(line)["body"] for line in data.splitlines()]
    assert len(bodies) == MANY
    assert {int(body) for body in bodies} == set(range(MANY))
    assert (job.done, job.total, job.outputs["rows"]) == (MANY, MANY, MANY)


@pytest.mark.must_beat(36)
def test_without_the_permission_it_is_forbidden(reader: User, topic: str, local: Cluster) -> None:
    assert Api(reader)("post", "/messages/exports", {"topic": topic}).status_code == 403
    viewer = browser(reader)
    assert viewer.get(f"{PAGE}?topic={topic}").status_code == 403
    assert viewer.post(PAGE, {"topic": topic}).status_code == 403
    assert "Export" not in html(viewer, f"/clusters/local/messages/?topic={topic}")


def test_only_what_the_list_shows_is_exported(
    api: Api, traffic: Traffic, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(traffic, *numbered(topic, 30), Message(topic, b"\xff\x00", tags="other"))
    monkeypatch.setattr(export, "PAGE_ROWS", 4)
    _job, data = exported(api, topic=topic, tags="t", body="message 2")
    rows = [json.loads(line) for line in data.splitlines()]
    wanted = ["message 2"] + [f"message 2{digit}" for digit in range(10)]
    assert sorted(row["body"] for row in rows) == sorted(wanted)
    assert rows[0]["stored_ms"] >= rows[-1]["stored_ms"]
    job, data = exported(api, topic=topic, most=10)
    assert len(data.splitlines()) == 10
    assert job.outputs["left_out"] > 0
    assert json.loads(data.splitlines()[0])["body_encoding"] == "base64"
    assert base64.b64decode(json.loads(data.splitlines()[0])["body"]) == b"\xff\x00"


EVIL = ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(1)", "\t=1", " =1", "|calc", '"=1"']


def test_no_cell_is_a_formula(api: Api, traffic: Traffic, topic: str) -> None:
    store(
        traffic,
        *(Message(topic, each.encode(), tags=each, keys=(each.strip(),)) for each in EVIL),
    )
    _job, data = exported(api, topic=topic, format="csv")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["body"].removeprefix("'") for row in reversed(rows)] == EVIL
    starts = ("=", "+", "-", "@", "\t", "|")
    for row in rows:
        assert not any(cell.lstrip(" ").startswith(starts) for cell in row.values())
    _job, sheet = exported(api, topic=topic, format="xlsx")
    with zipfile.ZipFile(io.BytesIO(sheet)) as archive:
        inside = archive.read("xl/worksheets/sheet1.xml")
        assert b"<f>" not in inside
        assert inside.count(b"<row") == len(EVIL) + 1
        assert all("hyperlink" not in name for name in archive.namelist())


def test_a_cell_that_is_too_long_is_cut_and_says_so(api: Api, traffic: Traffic, topic: str) -> None:
    store(traffic, Message(topic, b"x" * 40_000), Message(topic, "a\u0001b".encode()))
    _job, sheet = exported(api, topic=topic, format="xlsx")
    with zipfile.ZipFile(io.BytesIO(sheet)) as archive:
        inside = archive.read("xl/worksheets/sheet1.xml")
    assert b"x" * 32_767 in inside
    assert b"x" * 32_768 not in inside
    assert b"<v>1</v>" in inside


def test_one_of_a_topic_at_a_time_and_it_can_be_cancelled(
    api: Api, page: Client, topic: str, queue: list[int]
) -> None:
    number = api("post", "/messages/exports", {"topic": topic}).json()["job"]
    assert api("post", "/messages/exports", {"topic": topic}).status_code == 409
    again = page.post(PAGE, {"topic": topic, "format": "csv", "most": "10"})
    assert again.headers["Location"] == f"/clusters/local/jobs/{number}/"
    ledger.cancel(Job.objects.get(pk=number))
    runner.run(number, notify=lambda job: None)
    assert Job.objects.get(pk=number).state == State.CANCELLED
    assert queue == [number]


def test_a_cluster_that_stays_away_fails_the_job_with_its_reason(
    api: Api, topic: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_DELAY_S", 0.0)
    number = api("post", "/messages/exports", {"topic": topic}).json()["job"]
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    runner.run(number, notify=lambda job: None)
    job = Job.objects.get(pk=number)
    assert job.state == State.FAILED
    assert NOWHERE in job.error


def test_the_page_tells_how_many_and_starts(page: Client, traffic: Traffic, topic: str) -> None:
    store(traffic, *numbered(topic, 3))
    assert "3 messages" in html(page, f"{PAGE}?topic={topic}&tags=t")
    form = {"topic": topic, "tags": "t", "format": "csv", "most": "10", "body_test": "text"}
    answer = page.post(PAGE, form)
    assert answer.status_code == 302
    assert "/jobs/" in answer.headers["Location"]
    assert "Export messages" in html(page, answer.headers["Location"])


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"topic": "T", "format": "exe"},
        {"topic": "T", "most": 0},
        {"topic": "T", "most": 10**9},
        {"topic": "T", "most": 10**6, "format": "xlsx"},
        {"topic": "T", "sql": "a ="},
        {"topic": "T", "queue": "q" * 400},
        {"topic": "T", "x": 1},
    ],
)
def test_what_cannot_be_exported_is_refused(
    api: Api, page: Client, wish: dict[str, Any], queue: list[int]
) -> None:
    assert api("post", "/messages/exports", wish).status_code == 400
    assert page.post(PAGE, {"most": "1", **wish, "tags": NASTY * 20}).status_code == 422
    assert queue == []


def test_a_hostile_address_is_shown_and_never_run(page: Client, api: Api) -> None:
    assert api("post", "/messages/exports", {"topic": "nosuch"}).status_code == 404
    answer = page.get(PAGE, {"topic": "T", "sql": NASTY})
    assert answer.status_code == 422
    assert not any(raw in answer.content for raw in RAW)
