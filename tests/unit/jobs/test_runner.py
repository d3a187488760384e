"""A job from its row to its end, with small real programs in place of Spark."""

from __future__ import annotations

import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest

from console.jobs import ledger, runner
from console.jobs.models import Job, Kind, Origin
from console.jobs.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db

FOREVER = 'import time; print(\'{"event": "progress", "stage": "read"}\'); time.sleep(600)'


@pytest.fixture(autouse=True)
def _home(settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:9876"}
    yield
    runner.stopping.clear()


def run(program: str, heard: list[str] | None = None) -> Job:
    job = ledger.enqueue("local", Kind.INGEST, by=None, origin=Origin.PERSON)
    told = heard if heard is not None else []
    command = [sys.executable, "-u", "-c", textwrap.dedent(program)]
    runner.run(job.pk, tell=lambda job: told.append(job.state), command=command)
    job.refresh_from_db()
    return job


def test_a_job_that_does_its_work() -> None:
    heard: list[str] = []
    job = run(
        """
        import sys
        print('{"event": "progress", "stage": "read", "percent": 30, "rows": 3, "rows_total": 9}')
        print('working', file=sys.stderr)
        print('{"event": "done", "rows": 9, "records": 20}')
        """,
        heard,
    )
    assert (job.state, job.rows, job.outputs["records"]) == (State.SUCCEEDED, 9, 20)
    assert job.log_tail == "working\n"
    assert job.inputs["namesrv"] == "127.0.0.1:9876"
    assert (heard[0], heard[-1]) == ("running", "succeeded")


def test_a_job_that_says_why_it_fails() -> None:
    job = run('print(\'{"event": "error", "kind": "LakeError", "message": "in use"}\'); exit(4)')
    assert (job.state, job.error) == (State.FAILED, "in use")


def test_a_job_that_dies_without_a_word() -> None:
    job = run("import os; os.kill(os.getpid(), 9)")
    assert (job.state, job.error) == (
        State.FAILED,
        "The process of the job was killed by signal 9.",
    )
    job = run("import sys; print('Traceback …', file=sys.stderr); sys.exit(7)")
    assert "ended with code 7" in job.error
    assert "Traceback" in job.log_tail


def test_a_program_that_cannot_be_started() -> None:
    job = ledger.enqueue("local", Kind.INGEST, by=None, origin=Origin.PERSON)
    runner.run(job.pk, tell=lambda job: None, command=["/no/such/program"])
    job.refresh_from_db()
    assert (job.state, "No such file" in job.error) == (State.FAILED, True)


def test_cancel_stops_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "POLL_S", 0.05)
    monkeypatch.setattr(ledger, "is_to_stop", lambda job: job.stage == "read")
    job = run(FOREVER)
    assert (job.state, job.error) == (State.CANCELLED, "")


def test_a_worker_that_is_asked_to_stop_stops_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "POLL_S", 0.05)
    threading.Timer(0.3, runner.stopping.set).start()
    job = run(FOREVER)
    assert (job.state, job.error) == (State.FAILED, runner.WORKER_STOPPED)


def test_a_job_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "POLL_S", 0.05)
    monkeypatch.setattr(runner, "JOB_SECONDS_MAX", 0.2)
    job = run(FOREVER)
    assert (job.state, job.error) == (State.FAILED, runner.TOOK_TOO_LONG)


def test_a_job_that_was_given_up_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row says that the worker is lost: it must not go on beside its successor."""
    monkeypatch.setattr(runner, "POLL_S", 0.05)

    def give_up(job: Job) -> None:
        if job.stage == "read":
            Job.objects.filter(pk=job.pk).update(state=State.FAILED, error="lost")

    job = ledger.enqueue("local", Kind.INGEST, by=None, origin=Origin.PERSON)
    runner.run(job.pk, tell=give_up, command=[sys.executable, "-u", "-c", FOREVER])
    job.refresh_from_db()
    assert (job.state, job.error) == (State.FAILED, "lost")


def test_a_task_that_comes_twice_finds_the_job_taken() -> None:
    job = run('print(\'{"event": "done"}\')')
    heard: list[Job] = []
    runner.run(job.pk, tell=heard.append, command=["/no/such/program"])
    runner.run(job.pk + 1000, tell=heard.append, command=["/no/such/program"])
    assert heard == []


def test_the_command_names_cluster_and_lake(settings: Settings) -> None:
    settings.SPARK_MASTER = "spark://m:7077"
    command = runner.command_of(Kind.INGEST, "local", "127.0.0.1:9876")
    assert command[1:4] == ["-m", "spark_jobs", "ingest"]
    assert command[command.index("--lake") + 1].endswith("/lake/local")
    assert command[command.index("--master") + 1] == "spark://m:7077"
    assert "--until-stdin-closes" in command
