"""Jobs of the console on the Spark service: one Java for many jobs, kills, cancel, idle end."""

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pytest_django import Settings

from console.services.analytics import trace_jobs
from console.services.jobs import ledger, runner, spark_service
from console.services.jobs.models import Job, Origin
from console.services.jobs.paths import lake_of, spark_service_log, spark_socket
from console.services.jobs.states import State
from tests.spark.traffic import send, trace_bodies
from tests.support.cluster import Cluster
from tests.support.processes import command_line
from trace.lake import HOUR_MS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.django_db]

MESSAGES = 40
DEADLINE_S = 180.0


class Traffic:
    """Traces in a separate topic, which the jobs of cluster `local` read."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._random = random.Random(7)
        self.sent = 0

    def send(self) -> int:
        """Send more traces; returns the number of messages."""
        begin_ms = time.time_ns() // 1_000_000 // HOUR_MS * HOUR_MS - 5 * HOUR_MS
        name = f"traced-{self.sent}"
        bodies = trace_bodies(self._random, name, MESSAGES, begin_ms)
        send(self._cluster, self._topic, bodies)
        self.sent += len(bodies)
        return len(bodies)


@pytest.fixture
def traffic(
    shared_cluster: Cluster, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Traffic]:
    topic = f"trace-{uuid.uuid4().hex[:8]}"
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": shared_cluster.namesrv_addr}
    settings.SPARK_MASTER = "local[1]"
    settings.SPARK_MEMORY_MB = 768
    arguments_of = trace_jobs.arguments_of
    monkeypatch.setattr(
        trace_jobs, "arguments_of", lambda *asked: [*arguments_of(*asked), "--topic", topic]
    )
    yield Traffic(shared_cluster, topic)
    spark_service.service.stop()


class Observer:
    """Receives every change of a job, and acts once when the job enters a stage."""

    def __init__(self, stage: str = "", act: Callable[[Job], None] = lambda job: None) -> None:
        self._stage = stage
        self._act: Callable[[Job], None] | None = act
        self.stages: list[str] = []

    def __call__(self, job: Job) -> None:
        if job.stage not in self.stages:
            self.stages.append(job.stage)
        if self._stage and job.stage == self._stage and self._act is not None:
            act, self._act = self._act, None
            act(job)


def run(observer: Observer | None = None) -> Job:
    job = ledger.enqueue("local", trace_jobs.INGEST, by=None, origin=Origin.PERSON)
    runner.run(job.pk, notify=observer or Observer())
    job.refresh_from_db()
    return job


def service() -> psutil.Process:
    """The running service of this process."""
    return child_of(psutil.Process(), lambda program: "serve" in command_line(program))


def java_of(program: psutil.Process) -> psutil.Process:
    return child_of(program, lambda child: "java" in child.name())


def child_of(
    program: psutil.Process, is_wanted: Callable[[psutil.Process], bool]
) -> psutil.Process:
    found = []
    for child in program.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # also a zombie
            found += [child] if is_wanted(child) else []
    [only] = found
    return only


def assert_whole(traffic: Traffic) -> None:
    """Every message is in the lake once, with its tables."""
    snapshot = Lake(lake_of("local")).snapshot()
    assert (snapshot.messages, any(snapshot.stale.values())) == (traffic.sent, False)


def test_jobs_share_one_java(traffic: Traffic) -> None:
    traffic.send()
    cold = Observer()
    first = run(cold)
    assert first.state == State.SUCCEEDED, first.error
    java = java_of(service())
    assert {"start", "read", "rollup"} <= set(cold.stages)

    sent = traffic.send()
    warm = Observer()
    second = run(warm)
    assert (second.state, second.done) == (State.SUCCEEDED, sent), second.error
    assert java_of(service()) == java
    assert "start" not in warm.stages
    assert "begins" in second.log_tail
    assert_whole(traffic)


@pytest.mark.parametrize("find", [service, lambda: java_of(service())], ids=["service", "java"])
def test_a_job_survives_a_kill(traffic: Traffic, find: Callable[[], psutil.Process]) -> None:
    killed: list[psutil.Process] = []

    def kill(_: Job) -> None:
        killed.extend([service(), java_of(service())])
        find().kill()

    traffic.send()
    observer = Observer("rollup", kill)
    job = run(observer)
    assert killed, observer.stages
    assert job.state == State.SUCCEEDED, job.error
    _, alive = psutil.wait_procs(killed, DEADLINE_S)
    assert alive == []
    assert_whole(traffic)

    sent = traffic.send()
    job = run()
    assert (job.state, job.done) == (State.SUCCEEDED, sent), job.error
    assert java_of(service()) not in killed
    assert_whole(traffic)


def test_a_cancelled_job_keeps_spark(traffic: Traffic) -> None:
    traffic.send()
    observer = Observer("read", ledger.cancel)
    job = run(observer)
    assert (job.state, job.error) == (State.CANCELLED, ""), observer.stages
    java = java_of(service())
    job = run()
    assert job.state == State.SUCCEEDED, job.error
    assert java_of(service()) == java
    assert_whole(traffic)


def test_an_idle_service_ends(traffic: Traffic, settings: Settings) -> None:
    settings.SPARK_IDLE_MINUTES = 1 / 60
    traffic.send()
    assert run().state == State.SUCCEEDED
    _, alive = psutil.wait_procs([service()], DEADLINE_S)
    assert alive == []
    assert not spark_socket().exists()

    traffic.send()
    settings.SPARK_IDLE_MINUTES = 10
    assert run().state == State.SUCCEEDED
    assert service().is_running()
    assert_whole(traffic)


def test_without_a_service_the_job_runs_cold(traffic: Traffic) -> None:
    spark_socket().mkdir(parents=True)  # the service cannot listen
    traffic.send()
    job = run()
    assert job.state == State.SUCCEEDED, job.error
    assert "spark.sock" in spark_service_log().read_text()
    assert_whole(traffic)


def test_a_job_for_another_session_runs_cold(traffic: Traffic, settings: Settings) -> None:
    traffic.send()
    assert run().state == State.SUCCEEDED
    java = java_of(service())
    settings.SPARK_MASTER = "local[2]"
    sent = traffic.send()
    job = run()
    assert (job.state, job.done) == (State.SUCCEEDED, sent), job.error
    assert "another master" in spark_service_log().read_text()
    assert java_of(service()) == java
    assert_whole(traffic)
