"""Program jobs from row to final state, with small real programs in place of Spark."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from console.services.analytics import trace_jobs
from console.services.jobs import control, kinds, ledger, runner
from console.services.jobs.control import Control, Listener
from console.services.jobs.models import Job, Origin
from console.services.jobs.program import run_program
from console.services.jobs.reports import Done
from console.services.jobs.states import State
from core_broker.client import Credentials

pytestmark = pytest.mark.django_db

KIND = "program"
FOREVER = 'import time; print(\'{"event": "progress", "stage": "read"}\'); time.sleep(600)'


@pytest.fixture(autouse=True)
def _home(settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:9876"}
    yield
    control.stopping.clear()
    kinds.unregister(KIND)


def kind_of(program: str | list[str]) -> None:
    """Make a kind of jobs known that runs a program."""
    is_script = isinstance(program, str)
    script = [sys.executable, "-u", "-c", textwrap.dedent(str(program))]
    command = script if is_script else list(program)
    kinds.unregister(KIND)
    kinds.register(KIND, lambda job, control: run_program(job, control, command), title="Program")


def enqueued() -> Job:
    return ledger.enqueue("local", KIND, by=None, origin=Origin.PERSON)


def run(program: str | list[str], heard: list[str] | None = None) -> Job:
    kind_of(program)
    job = enqueued()
    told = heard if heard is not None else []
    runner.run(job.pk, notify=lambda job: told.append(job.state))
    job.refresh_from_db()
    return job


def steered(program: str, notify: Listener) -> Job:
    kind_of(program)
    job = enqueued()
    runner.run(job.pk, notify=notify)
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
    assert (job.state, job.done, job.outputs["records"]) == (State.SUCCEEDED, 9, 20)
    assert job.log_tail == "working\n"
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
    job = run(["/no/such/program"])
    assert (job.state, "No such file" in job.error) == (State.FAILED, True)


def test_cancel_stops_the_program() -> None:
    def cancel(job: Job) -> None:
        if job.stage == "read":
            ledger.cancel(job)

    job = steered(FOREVER, cancel)
    assert (job.state, job.error) == (State.CANCELLED, "")


def test_a_worker_that_is_asked_to_stop_stops_its_job() -> None:
    job = steered(FOREVER, lambda job: control.stopping.set() if job.stage == "read" else None)
    assert (job.state, job.error) == (State.FAILED, control.WORKER_STOPPED)


def test_a_job_that_hangs_is_stopped() -> None:
    command = [sys.executable, "-u", "-c", FOREVER]
    kinds.unregister(KIND)
    kinds.register(
        KIND, lambda job, control: run_program(job, control, command), title="P", seconds_max=0.2
    )
    job = enqueued()
    runner.run(job.pk, notify=lambda job: None)
    job.refresh_from_db()
    assert (job.state, job.error) == (State.FAILED, control.TOOK_TOO_LONG)


def test_a_job_that_was_given_up_is_stopped() -> None:
    """The row is marked as lost: the old worker must stop before the successor."""

    def give_up(job: Job) -> None:
        if job.stage == "read":
            Job.objects.filter(pk=job.pk).update(state=State.FAILED, error="lost")

    job = steered(FOREVER, give_up)
    assert (job.state, job.error) == (State.FAILED, "lost")


def test_a_task_that_comes_twice_finds_the_job_taken() -> None:
    job = run('print(\'{"event": "done"}\')')
    heard: list[Job] = []
    runner.run(job.pk, notify=heard.append)
    runner.run(job.pk + 1000, notify=heard.append)
    assert heard == []


def test_the_command_names_cluster_and_lake(settings: Settings) -> None:
    settings.SPARK_MASTER = "spark://m:7077"
    command = trace_jobs.arguments_of("ingest", "local", "127.0.0.1:9876")
    assert command[0] == "ingest"
    assert command[command.index("--lake") + 1].endswith("/lake/local")
    assert command[command.index("--master") + 1] == "spark://m:7077"
    assert command[command.index("--conf") + 1] == "spark.driver.memory=1024m"


def test_the_command_names_the_tls_file_of_the_cluster(settings: Settings) -> None:
    settings.CONSOLE_CLUSTER_TLS_FILES = {"prod": "/etc/prod-tls.properties"}
    command = trace_jobs.arguments_of("ingest", "prod", "h:9876")
    assert command[command.index("--tls-config") + 1] == "/etc/prod-tls.properties"
    assert "--tls-config" not in trace_jobs.arguments_of("ingest", "local", "h:9876")


def test_the_keys_of_the_cluster_are_in_a_private_file_during_the_job(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"signed": "h:9876"}
    keys = Credentials("console", "s3cret")
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"signed": keys}
    files: list[Path] = []

    def run_program(job: Job, control: Control, arguments: list[str]) -> Done:
        assert not any("s3cret" in argument for argument in arguments)
        files.append(Path(arguments[arguments.index("--credentials") + 1]))
        assert Credentials.from_file(files[0]) == keys
        assert files[0].stat().st_mode & 0o777 == 0o600
        return Done(done=1)

    monkeypatch.setattr(trace_jobs, "run_spark_program", run_program)
    monkeypatch.setattr(trace_jobs, "write_day_rollups", lambda cluster, progress: 0)
    job = ledger.enqueue("signed", trace_jobs.INGEST, by=None, origin=Origin.PERSON)
    runner.run(job.pk, notify=lambda job: None)
    job.refresh_from_db()
    assert (job.state, job.error) == (State.SUCCEEDED, "")
    assert not files[0].exists()


def test_jobs_of_one_lake_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "POLL_S", 0.01)
    monkeypatch.setattr(trace_jobs, "write_day_rollups", lambda cluster, progress: 0)
    done = Done(done=5)
    monkeypatch.setattr(trace_jobs, "run_spark_program", lambda *_: done)
    first = ledger.enqueue("local", "ingest", by=None, origin=Origin.PERSON)
    assert ledger.claim(first.pk, "another worker") is not None
    kinds.register(KIND, trace_jobs.run_spark, title="Second", uses_spark=True)
    second = enqueued()
    heard: list[str] = []

    def notify(job: Job) -> None:
        heard.append(job.stage)
        if job.stage == "wait":
            ledger.finish(first, State.SUCCEEDED)

    runner.run(second.pk, notify=notify)
    second.refresh_from_db()
    assert "wait" in heard
    assert (second.state, second.done) == (State.SUCCEEDED, 5)
    assert second.inputs["namesrv"] == "127.0.0.1:9876"
