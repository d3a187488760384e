"""Jobs through pages, resources and the feed: start, look, cancel, and what is missing."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError
from pytest_django import Settings

from console.services.analytics.trace_jobs import INGEST
from console.services.jobs import files, kinds, ledger, spark, tasks
from console.services.jobs.errors import QueueDown
from console.services.jobs.models import Job, Origin
from console.services.jobs.reports import Done, Progress
from console.services.jobs.spark import Availability
from console.services.jobs.states import State
from tests.api.conftest import Api, browser
from tests.api.test_roles import member
from tests.support.cluster import Cluster

CLOSED_PORT = "redis://127.0.0.1:1/0"
USABLE = Availability(usable=True, java="Java 17.0.15 (PATH)")


@pytest.fixture(autouse=True)
def _spark_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "availability", lambda: USABLE)


@pytest.fixture
def counting() -> Iterator[str]:
    """A job kind of another area: pauses, continues, has no manual start."""
    kinds.register(
        "count",
        lambda job, control: Done(),
        title="Count",
        unit="stars",
        can_pause=True,
        can_continue=True,
        stages={"count": "Counting"},
        outputs={"odd": "Odd ones"},
    )
    yield "count"
    kinds.unregister("count")


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A task queue that records job numbers and runs no job."""
    taken: list[int] = []
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(
        tasks.run_job, "apply_async", lambda arguments, retry: taken.append(arguments[0])
    )
    return taken


def job_in(state: State, cluster: str = "local", kind: str = INGEST, scope: str = "") -> Job:
    job = ledger.enqueue(cluster, kind, by=None, origin=Origin.SCHEDULE, scope=scope)
    if state is State.QUEUED:
        return job
    if state is State.CANCELLED:
        ledger.cancel(job)
    else:
        claimed = ledger.claim(job.pk, "worker:1")
        assert claimed is not None
        job = claimed
        if state is State.SUCCEEDED:
            ledger.finish(job, state, done=Done(done=1234, outputs={"records": 5000, "lost": 3}))
        elif state is State.PAUSED:
            ledger.pause(job)
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


@pytest.mark.parametrize(
    ("kind", "scope", "more"),
    [
        ("export", "orders", "messages:write:orders"),
        ("replay", "billing", "deadletters:write:billing"),
        ("export-table", "topics", "topics:read"),
    ],
)
def test_a_job_needs_the_permission_for_what_it_reads_or_changes(
    kind: str, scope: str, more: str, local: Cluster, db: None
) -> None:
    number = job_in(State.FAILED, kind=kind, scope=scope).pk
    jobs, both = Api(member("jo", "jobs:write")), Api(member("bo", "jobs:write", more))
    for action in ("continue", "cancel", "pause", "resume"):
        assert jobs("post", f"/jobs/{number}/{action}").status_code == 403, action
    assert jobs("get", f"/jobs/{number}/files/x.jsonl").status_code == 403
    assert both("get", f"/jobs/{number}/files/x.jsonl").status_code == 404
    assert both("post", f"/jobs/{number}/pause").status_code == 409


def test_a_bundle_needs_the_permission_for_all_clusters(
    local: Cluster, db: None, queue: list[int]
) -> None:
    number = job_in(State.SUCCEEDED, kind="debug-bundle").pk
    here, everywhere = Api(member("here", "jobs:*@local")), Api(member("all", "jobs:admin"))
    for api, read, started in ((here, 403, 403), (everywhere, 404, 202)):
        assert api("get", f"/jobs/{number}/files/x.zip").status_code == read
        assert api("post", "/jobs", {"kind": "debug-bundle"}).status_code == started
        assert api("post", "/jobs", {"kind": "ingest"}).status_code in (202, 409)


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
    assert api("get", "/jobs?state=nothing").status_code == 400
    assert api("post", "/jobs", {"kind": "x" * 5000}).status_code == 400
    assert api("post", "/jobs", {"kind": ["ingest"]}).status_code == 400
    assert api("post", "/jobs", {"kinds": "ingest"}).status_code == 400
    assert api("get", f"/jobs/{10**30}").status_code == 404
    assert api("get", f"/jobs/{10**30}/files").status_code == 404
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
        tasks.start("local", INGEST)
    [job] = Job.objects.all()
    assert (job.state, "connection reset" in job.error) == (State.FAILED, True)


def test_without_spark_the_page_says_what_is_missing(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Availability(usable=False, reason="Spark needs Java and found none that fits.")
    monkeypatch.setattr(spark, "last_known", lambda: nothing)
    shown = page.get("/clusters/local/jobs/").content.decode()
    assert nothing.reason is not None
    assert nothing.reason in shown
    assert "Other pages, including message traces, work" in shown


def test_the_schedule_is_quiet_without_spark_or_when_switched_off(
    db: None, queue: list[int], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_CLUSTERS = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}
    settings.JOB_MINUTES = {INGEST: 10}
    monkeypatch.setattr(spark, "availability", lambda: Availability(usable=False, reason="no Java"))
    tasks.start_everywhere(INGEST)
    assert queue == []
    monkeypatch.setattr(spark, "availability", lambda: USABLE)
    settings.JOB_MINUTES = {INGEST: 0}
    tasks.start_everywhere(INGEST)
    assert queue == []
    settings.JOB_MINUTES = {INGEST: 10}
    tasks.start_everywhere(INGEST)
    tasks.start_everywhere(INGEST)
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
    assert b"The job has already ended" in over.content


def test_pause_resume_and_continue(api: Api, queue: list[int], counting: str) -> None:
    job = job_in(State.RUNNING, kind=counting, scope="orders")
    path = f"/jobs/{job.pk}"
    assert api("post", f"{path}/resume").status_code == 409
    assert api("post", f"{path}/continue").status_code == 409
    assert api("post", f"{path}/pause").json()["state"] == "paused"
    assert api("post", f"{path}/pause").status_code == 409
    assert api("post", f"{path}/resume").json()["state"] == "running"
    ledger.finish(job, State.FAILED, error="broken")
    answer = api("post", f"{path}/continue")
    assert answer.status_code == 202
    again = answer.json()
    assert (again["kind"], again["scope"]) == (counting, "orders")
    assert again["inputs"] == {"continues": job.pk}
    assert queue == [again["id"]]
    assert api("post", f"{path}/continue").status_code == 409


def test_a_program_of_spark_cannot_pause(api: Api, page: Client, db: None) -> None:
    job = job_in(State.RUNNING)
    assert api("post", f"/jobs/{job.pk}/pause").status_code == 409
    pressed = page.post(f"/clusters/local/jobs/{job.pk}/pause/", follow=True)
    assert b"cannot be paused now" in pressed.content
    assert Job.objects.get().state == State.RUNNING


def test_kinds_and_filters(api: Api, page: Client, counting: str) -> None:
    known = {kind["name"]: kind for kind in api.get("/jobs/kinds")["items"]}
    assert known["ingest"]["by_hand"]
    assert (
        known[counting] | {"by_hand": False, "can_pause": True, "unit": "stars"} == known[counting]
    )
    assert "ingest" in api("post", "/jobs", {"kind": counting}).json()["errors"]["kind"][0]
    mine = job_in(State.PAUSED, kind=counting)
    job_in(State.CANCELLED)
    assert [job["id"] for job in api.get("/jobs?kind=count")["items"]] == [mine.pk]
    assert [job["id"] for job in api.get("/jobs?state=paused")["items"]] == [mine.pk]
    assert api.get("/jobs?kind=nothing")["items"] == []
    shown = page.get("/clusters/local/jobs/?kind=count&state=paused").content.decode()
    assert f"Count #{mine.pk}" in shown
    assert b"No such job" in page.get("/clusters/local/jobs/?kind=count&state=failed").content


def test_the_buttons_of_a_job(page: Client, queue: list[int], counting: str) -> None:
    job = job_in(State.RUNNING, kind=counting, scope="<b>group</b>")
    path = f"/clusters/local/jobs/{job.pk}/"
    shown = page.get(path).content.decode()
    assert "pause-job" in shown
    assert "&lt;b&gt;group&lt;/b&gt;" in shown
    assert b"resume-job" in page.post(f"{path}pause/", follow=True).content
    assert b"pause-job" in page.post(f"{path}resume/", follow=True).content
    assert page.get(f"{path}pause/").status_code == 302
    ledger.note(job, Progress(stage="count", done=5, detail="at 5", outputs={"odd": 3}))
    shown = page.get(path).content.decode()
    assert all(text in shown for text in ("Counting", "at 5", "Odd ones", "stars"))
    ledger.finish(job, State.FAILED, error="broken")
    assert b"starts a job from the last progress" in page.get(path).content
    page.post(f"{path}continue/")
    assert queue


@pytest.fixture
def filed(settings: Settings, tmp_path: Path, db: None, counting: str) -> Job:
    settings.GANTRY_HOME = tmp_path
    job = job_in(State.CANCELLED, kind=counting)
    with files.writing(job.pk, "orders.html") as file:
        file.write(b"<script>alert(1)</script>")
    return job


def test_files_are_downloads(api: Api, page: Client, filed: Job) -> None:
    [file] = api.get(f"/jobs/{filed.pk}/files")["items"]
    assert (file["name"], file["size_bytes"]) == ("orders.html", 25)
    for answer in (
        api("get", f"/jobs/{filed.pk}/files/orders.html"),
        page.get(f"/clusters/local/jobs/{filed.pk}/files/orders.html"),
    ):
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="orders.html"'
        assert answer.getvalue() == b"<script>alert(1)</script>"
        answer.close()
    assert b"orders.html" in page.get(f"/clusters/local/jobs/{filed.pk}/").content


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e", "..%2fsecret_key", "a%00b", "x" * 999])
def test_only_files_of_the_job(name: str, api: Api, page: Client, filed: Job) -> None:
    assert api("get", f"/jobs/{filed.pk}/files/{name}").status_code == 404
    assert page.get(f"/clusters/local/jobs/{filed.pk}/files/{name}").status_code == 404


def test_a_reader_looks_but_does_not_fetch_or_steer(filed: Job, reader: User) -> None:
    eyes = Api(reader)
    assert eyes.get(f"/jobs/{filed.pk}/files")["items"]
    assert eyes("get", f"/jobs/{filed.pk}/files/orders.html").status_code == 403
    for act in ("cancel", "pause", "resume", "continue"):
        assert eyes("post", f"/jobs/{filed.pk}/{act}").status_code == 403
    looking = browser(reader)
    path = f"/clusters/local/jobs/{filed.pk}/"
    shown = looking.get(path).content.decode()
    assert f'href="{path}files/orders.html"' not in shown
    assert looking.get(f"{path}files/orders.html").status_code == 403


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_page_and_a_part(state: State, page: Client, db: None) -> None:
    job = job_in(state)
    if state is State.RUNNING:
        ledger.note(job, Progress(stage="read", percent=40, done=4, total=10, rate=2.5))
    path = f"/clusters/local/jobs/{job.pk}/"
    whole = page.get(path).content.decode()
    part = page.get(path, headers={"HX-Request": "true"}).content.decode()
    assert "<html" in whole
    assert "<html" not in part
    assert str(state.label) in part
    assert ("cancel-job" in part) == job.is_active
    assert ("start-ingest" in part) != job.is_active
    assert "pause-job" not in part
    listed = page.get("/clusters/local/jobs/", headers={"HX-Request": "true"}).content.decode()
    assert f"#{job.pk}" in listed


def test_an_error_is_shown_in_the_readers_language(page: Client, db: None) -> None:
    job = job_in(State.FAILED)
    path = f"/clusters/local/jobs/{job.pk}/"
    assert ledger.WORKER_LOST in page.get(path).content.decode()
    chinese = page.get(path, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert ledger.WORKER_LOST not in chinese
    assert "执行器" in chinese
