"""The ingest job as the console runs it: killed JVMs, and the run after the kills."""

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pytest_django import Settings

from console.services.analytics import queries, trace_jobs
from console.services.analytics.aggregates import Scope
from console.services.analytics.lake_session import lake_reader
from console.services.analytics.ranges import on_grid
from console.services.jobs import ledger, runner
from console.services.jobs.models import Job, Origin
from console.services.jobs.paths import lake_of
from console.services.jobs.spark_service import service
from console.services.jobs.states import State
from tests.spark.traffic import send, trace_bodies
from tests.support.cluster import Cluster
from trace.codec import Pub, decode_trace
from trace.lake import HOUR_MS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.django_db]

MESSAGES = 60


@pytest.fixture
def bodies(
    shared_cluster: Cluster, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[bytes]]:
    """Traces in a separate topic, which the jobs of cluster `local` read."""
    topic = f"trace-{uuid.uuid4().hex[:8]}"
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": shared_cluster.namesrv_addr}
    settings.SPARK_MASTER = "local[1]"
    begin_ms = time.time_ns() // 1_000_000 // HOUR_MS * HOUR_MS - 5 * HOUR_MS
    made = trace_bodies(random.Random(7), "traced", MESSAGES, begin_ms)
    send(shared_cluster, topic, made)
    arguments_of = trace_jobs.arguments_of
    monkeypatch.setattr(
        trace_jobs, "arguments_of", lambda *asked: [*arguments_of(*asked), "--topic", topic]
    )
    yield made
    service.stop()


def run(tell: "Killer") -> Job:
    job = ledger.enqueue("local", trace_jobs.INGEST, by=None, origin=Origin.PERSON)
    runner.run(job.pk, notify=tell)
    job.refresh_from_db()
    return job


class Killer:
    """Receives every change of the job, and kills all JVMs while the job is in a stage."""

    def __init__(self, stage: str | None) -> None:
        self.stage = stage
        self.stages: list[str] = []

    def __call__(self, job: Job) -> None:
        if job.stage not in self.stages:
            self.stages.append(job.stage)
        if self.stage is not None and job.stage == self.stage and job.is_active:
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if "java" in child.name():
                        child.kill()


def test_killed_jvms_fail_the_job_and_the_next_run_continues(bodies: list[bytes]) -> None:
    killed = run(Killer("rollup"))
    assert (killed.state, bool(killed.error)) == (State.FAILED, True)
    assert killed.log_tail
    heard = Killer(None)
    done = run(heard)
    assert done.state == State.SUCCEEDED, done.error
    assert {"rollup", "summaries"} <= set(heard.stages)
    assert done.inputs["master"] == "local[1]"
    assert Lake(lake_of("local")).snapshot().messages == len(bodies)

    records = [record for body in bodies for record in decode_trace(body).records]
    now = time.time_ns() // 1_000_000
    scope = Scope(on_grid(now - 24 * HOUR_MS, now + 24 * HOUR_MS))
    with lake_reader("local") as reader:
        counts = queries.overview(reader, scope).total.counts
    assert counts.sends == sum(isinstance(record, Pub) for record in records)
    again = run(Killer(None))
    assert (again.state, again.done) == (State.SUCCEEDED, 0)
