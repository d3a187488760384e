"""The ingest job against a real broker: results, micro-batches, and runs after a kill."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.jobs.ingest import Ingest, run_ingest
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.sources.connection import Connection
from spark_jobs.spark.progress import Progress, Stage
from tests.spark.lakes import content
from tests.spark.stops import StopHere
from tests.spark.traffic import send, trace_bodies
from tests.support.cluster import Cluster
from trace.codec import decode_trace
from trace.lake import DATASETS, EVENTS, HOUR_MS, MINUTE, Lake, LakeError, Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SEED = 20261105
PROCESS_DEADLINE_S = 90.0


class StopsAt(Progress):
    """Stops the job when it enters a stage."""

    def __init__(self, stage: Stage | None) -> None:
        super().__init__(io.StringIO(), as_json=True)
        self._stop_at = stage

    def enter(self, stage: Stage, *, part: int = 0, parts: int = 1) -> None:
        super().enter(stage, part=part, parts=parts)
        if stage is self._stop_at:
            raise StopHere


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ingest(
    spark: SparkSession,
    cluster: Cluster,
    lake: Path,
    topic: str,
    *,
    stop_at: Stage | None = None,
    per_round: int = 1_000_000,
) -> Result:
    job = Ingest(
        Connection(namesrv=cluster.namesrv_addr),
        lake,
        topic,
        messages_per_batch=per_round,
        rows_per_task=40,
    )
    runtime = Runtime(StopsAt(stop_at), lambda _is_short: nullcontext(spark), now_ms)
    return run_ingest(job, runtime)


def traffic(name: str, messages: int) -> list[bytes]:
    """Traces of the last hours."""
    begin_ms = now_ms() // HOUR_MS * HOUR_MS - 6 * HOUR_MS
    return trace_bodies(random.Random(SEED), name, messages, begin_ms)


def test_several_runs_give_the_same_lake_as_one_run(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path
) -> None:
    topic, bodies = "ingest-pieces", traffic("pieces", 120)
    half = len(bodies) // 2
    for some in (bodies[:half], bodies[half:]):
        send(shared_cluster, topic, some, queues=2)
        ingest(spark, shared_cluster, tmp_path / "pieces", topic)
    whole = ingest(spark, shared_cluster, tmp_path / "whole", topic)

    assert whole.rows == len(bodies)
    assert whole.records == sum(len(decode_trace(body).records) for body in bodies)
    pieces, at_once = content(tmp_path / "pieces"), content(tmp_path / "whole")
    assert pieces.keys() == at_once.keys()
    for name in DATASETS:
        assert pieces[name] == at_once[name], name
    assert len(at_once[EVENTS]) == whole.records

    again = ingest(spark, shared_cluster, tmp_path / "whole", topic)
    assert (again.rows, again.note) == (0, "Nothing new in the trace topic.")


def content_of_one_run(
    spark: SparkSession, cluster: Cluster, lake: Path, topic: str
) -> dict[str, list[tuple[Any, ...]]]:
    ingest(spark, cluster, lake, topic)
    return content(lake)


def test_an_interrupted_run_leaves_no_gap_and_no_duplicate(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path
) -> None:
    topic, bodies = "ingest-killed", traffic("killed", 40)
    send(shared_cluster, topic, bodies)
    nothing = content(tmp_path)
    with pytest.raises(StopHere):
        ingest(spark, shared_cluster, tmp_path, topic, stop_at=Stage.READ)
    assert content(tmp_path) == nothing
    in_two_rounds = len(bodies) // 2 + 1
    with pytest.raises(StopHere):
        ingest(
            spark, shared_cluster, tmp_path, topic, stop_at=Stage.ROLLUP, per_round=in_two_rounds
        )
    # The events are committed, and wait for their facts.
    records = sum(len(decode_trace(body).records) for body in bodies)
    between = content(tmp_path)
    assert (len(between[EVENTS]), between["minute"]) == (records, [])
    assert len(Lake(tmp_path).snapshot().pending) == 2
    ingest(spark, shared_cluster, tmp_path, topic)

    after = content(tmp_path)
    assert after[EVENTS] == between[EVENTS]
    assert after == content_of_one_run(spark, shared_cluster, tmp_path / "once", topic)
    snapshot = Lake(tmp_path).snapshot()
    assert snapshot.messages == len(bodies)
    assert snapshot.offsets == {"broker-a": {0: len(bodies)}}

    # The next run deletes unreferenced folders.
    ingest(spark, shared_cluster, tmp_path, topic)
    for name in DATASETS:
        parts = snapshot.parts.get(name, {})
        counting = {(hour, run) for hour, runs in parts.items() for run in runs}
        assert {(hour, run) for hour, run, _ in Lake(tmp_path).on_disk(name)} == counting
    assert content(tmp_path) == after


def test_a_killed_process_leaves_no_gap_and_no_duplicate(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path
) -> None:
    topic, bodies = "ingest-process", traffic("process", 30)
    send(shared_cluster, topic, bodies)
    lake = tmp_path / "lake"
    command = [
        *(sys.executable, "-m", "spark_jobs", "ingest", "-n", shared_cluster.namesrv_addr),
        *("--lake", str(lake), "--topic", topic, "--run-dir", str(tmp_path / "run")),
        *("--master", "local[2]", "--conf", "spark.ui.enabled=false", "--progress-json"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as job:
        guard = time.monotonic() + PROCESS_DEADLINE_S
        assert job.stdout is not None
        stages = []
        for line in job.stdout:
            stages.append(json.loads(line)["stage"])
            assert time.monotonic() < guard
            if stages[-1] == "rollup":
                with pytest.raises(LakeError, match="Another job is writing"):
                    ingest(spark, shared_cluster, lake, topic)
                os.killpg(job.pid, signal.SIGKILL)
                break
    assert stages[:2] == ["plan", "start"]
    assert Lake(lake).snapshot().messages == len(bodies)
    assert MINUTE not in Lake(lake).snapshot().parts

    ingest(spark, shared_cluster, lake, topic)
    assert len(content(lake)[EVENTS]) == sum(len(decode_trace(body).records) for body in bodies)


def test_a_run_without_work_does_not_start_spark(shared_cluster: Cluster, tmp_path: Path) -> None:
    def no_spark(_is_short: bool) -> AbstractContextManager[SparkSession]:
        raise AssertionError("Spark was started")

    def run(topic: str) -> Result:
        job = Ingest(Connection(namesrv=shared_cluster.namesrv_addr), tmp_path, topic)
        return run_ingest(job, Runtime(StopsAt(None), no_spark, now_ms))

    assert "No broker has the topic" in run("ingest-nowhere").note
    send(shared_cluster, "ingest-empty", [])
    assert run("ingest-empty").note == "Nothing new in the trace topic."
    Lake(tmp_path).commit(Snapshot(topic="ingest-first", run=1))
    with pytest.raises(LakeError, match="holds traces of ingest-first"):
        run("ingest-empty")
