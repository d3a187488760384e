"""Jobs through pages, resources and the feed: start, look, cancel, and what is missing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from console.jobs import ledger, spark, tasks
from console.jobs.errors import QueueDown
from console.jobs.models import Job, Kind, Origin
from console.jobs.reports import Done, Moved
from console.jobs.spark import Availability
from console.jobs.states import State

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

    from tests.api.conftest import Api

CLOSED_PORT = "redis://127.0.0.1:1/0"
USABLE = Availability(usable=True, java="Java 17.0.15 from the path")


@pytest.fixture(autouse=True)
def _spark_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "availability", lambda: USABLE)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A task queue that takes every job and runs none; holds their numbers."""
    taken: list[int] = []
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(
        tasks.run_job, "apply_async", lambda arguments, retry: taken.append(arguments[0])
    )
    return taken


def job_in(state: State, cluster: str = "local") -> Job:
    job = ledger.enqueue(cluster, Kind.INGEST, by=None, origin=Origin.SCHEDULE)
    if state is State.QUEUED:
        return job
    if state is State.CANCELLED:
        ledger.cancel(job)
    else:
        claimed = ledger.claim(job.pk, "worker:1", {"namesrv": "127.0.0.1:9876"})
        assert claimed is not None
        job = claimed
        if state is State.SUCCEEDED:
            ledger.finish(job, state, done=Done(rows=1234, records=5000, lost=3))
        elif state is State.FAILED:
            ledger.finish(job, state, error=ledger.WORKER_LOST)
    job.refresh_from_db()
    return job


def test_a_job_is_started_once_and_can_be_cancelled(api: Api, queue: list[int]) -> None:
    answer = api("post", "/jobs", {"kind": "ingest"})
    assert answer.status_code == 202
    started = answer.json()
    assert (started["state"], started["started_by"]) == ("queued", "staff")
    assert queue == [started["id"]]
    assert answer.headers["Location"] == f"/api/v1/clusters/local/jobs/{started['id']}"

    twice = api("post", "/jobs", {})
    assert (twice.status_code, twice.json()["type"]) == (409, "urn:gantry:problem:conflict")

    cancelled = api("post", f"/jobs/{started['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert api("post", f"/jobs/{started['id']}/cancel").status_code == 409
    assert api("post", "/jobs", {}).status_code == 202


def test_a_running_job_is_asked_to_stop(api: Api, db: None) -> None:
    job = job_in(State.RUNNING)
    answer = api("post", f"/jobs/{job.pk}/cancel").json()
    assert (answer["state"], answer["cancel_requested"]) == ("running", True)


def test_wrong_requests(api: Api, queue: list[int]) -> None:
    assert api("post", "/jobs", {"kind": "no such kind"}).status_code == 400
    assert api("get", "/jobs/99999").status_code == 404
    assert api("post", "/jobs/99999/cancel").status_code == 404
    assert api("get", "/jobs?cursor=x").status_code == 400
    assert api("get", "/jobs?limit=0").status_code == 400
    other = job_in(State.QUEUED, "other")
    assert api("get", f"/jobs/{other.pk}").status_code == 404
    assert queue == []


def test_the_list_is_walked_by_cursor(api: Api, db: None) -> None:
    made = [job_in(State.CANCELLED).pk for _ in range(5)]
    job_in(State.CANCELLED, "other")
    seen, path = [], "/jobs?limit=2"
    while path:
        page = api.get(path)
        assert page["total"] == 5
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        path = f"/jobs?limit=2&cursor={cursor}" if cursor else ""
    assert seen == made[::-1]


def test_looking_at_jobs_frees_those_whose_worker_is_lost(api: Api, db: None) -> None:
    job = job_in(State.RUNNING)
    Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    [item] = api.get("/jobs")["items"]
    assert (item["state"], item["error"]) == ("failed", ledger.WORKER_LOST)


@pytest.mark.parametrize("url", ["", CLOSED_PORT])
def test_without_redis_the_answer_says_what_is_missing(
    url: str, api: Api, page: Client, settings: Settings
) -> None:
    settings.REDIS_URL = url
    answer = api("post", "/jobs", {})
    assert answer.status_code == 503
    problem = answer.json()
    assert problem["type"] == "urn:gantry:problem:queue-down"
    assert "celery -A console worker" in problem["hint"]
    assert not Job.objects.exists()

    shown = page.get("/clusters/local/jobs/")
    assert shown.status_code == 200
    assert b"there is no task queue" in shown.content
    pressed = page.post("/clusters/local/jobs/start/ingest/")
    assert pressed.status_code == 503
    assert b"Background jobs are not available" in pressed.content


def test_a_queue_that_breaks_while_it_is_asked(
    api: Api, queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OperationalError("connection reset")

    monkeypatch.setattr(tasks.run_job, "apply_async", broken)
    with pytest.raises(QueueDown):
        tasks.start("local", Kind.INGEST)
    [job] = Job.objects.all()
    assert (job.state, "connection reset" in job.error) == (State.FAILED, True)


def test_without_spark_the_page_says_what_is_missing(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Availability(usable=False, reason="Spark needs Java and found none that fits.")
    monkeypatch.setattr(spark, "availability", lambda: nothing)
    shown = page.get("/clusters/local/jobs/").content.decode()
    assert nothing.reason is not None
    assert nothing.reason in shown
    assert "Everything else in the console works" in shown


def test_the_schedule_is_quiet_without_spark_or_when_switched_off(
    db: None, queue: list[int], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_CLUSTERS = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}
    settings.INGEST_MINUTES = 10
    monkeypatch.setattr(spark, "availability", lambda: Availability(usable=False, reason="no Java"))
    tasks.ingest_all()
    assert queue == []
    monkeypatch.setattr(spark, "availability", lambda: USABLE)
    settings.INGEST_MINUTES = 0
    tasks.ingest_all()
    assert queue == []
    settings.INGEST_MINUTES = 10
    tasks.ingest_all()
    tasks.ingest_all()
    assert len(queue) == 2
    assert set(Job.objects.values_list("origin", flat=True)) == {Origin.SCHEDULE}


def test_the_buttons_of_the_page(page: Client, queue: list[int]) -> None:
    assert b"No job has run yet" in page.get("/clusters/local/jobs/").content
    answer = page.post("/clusters/local/jobs/start/ingest/")
    assert (answer.status_code, answer.headers["Location"]) == (
        302,
        f"/clusters/local/jobs/{queue[0]}/",
    )
    again = page.post("/clusters/local/jobs/start/ingest/", follow=True)
    assert b"is waiting or running already" in again.content
    assert page.get("/clusters/local/jobs/start/ingest/").status_code == 302
    assert page.post("/clusters/local/jobs/start/nothing/").status_code == 404
    page.post(f"/clusters/local/jobs/{queue[0]}/cancel/")
    assert Job.objects.get().state == State.CANCELLED
    over = page.post(f"/clusters/local/jobs/{queue[0]}/cancel/", follow=True)
    assert b"The job was over already" in over.content


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_page_and_a_part(state: State, page: Client, db: None) -> None:
    job = job_in(state)
    if state is State.RUNNING:
        ledger.note(job, Moved(stage="read", percent=40, rows=4, rows_total=10, rate=2.5), "log")
    path = f"/clusters/local/jobs/{job.pk}/"
    whole = page.get(path).content.decode()
    part = page.get(path, headers={"HX-Request": "true"}).content.decode()
    assert "<html" in whole
    assert "<html" not in part
    assert str(state.label) in part
    assert ("cancel-job" in part) == job.is_active
    assert ("start-ingest" in part) != job.is_active
    listed = page.get("/clusters/local/jobs/", headers={"HX-Request": "true"}).content.decode()
    assert f"#{job.pk}" in listed


def test_an_error_is_shown_in_the_readers_language(page: Client, db: None) -> None:
    job = job_in(State.FAILED)
    path = f"/clusters/local/jobs/{job.pk}/"
    assert ledger.WORKER_LOST in page.get(path).content.decode()
    chinese = page.get(path, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert ledger.WORKER_LOST not in chinese
    assert "执行器" in chinese
