"""Jobs on the lake alone: derive tables again, compact small files, drop expired hours."""

import random
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from core_broker.errors import ClientError
from spark_jobs.jobs.compact import Compact, run_compact
from spark_jobs.jobs.ingest import Ingest, run_ingest
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.jobs.table_jobs import TABLES_OF_JOB, Derive, hours_between, run_derive
from spark_jobs.sources.connection import Connection
from tests.spark.lakes import content
from tests.spark.stops import StopsAfter
from tests.spark.traffic import send, trace_bodies
from tests.support.cluster import Cluster
from trace.lake import DERIVED, EVENTS, HOUR_MS, Lake, hour_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAY_MS = 24 * HOUR_MS


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def runtime(spark: SparkSession) -> Runtime:
    return Runtime(StopsAfter(None), lambda _: nullcontext(spark), now_ms)


def no_spark(_is_short: bool) -> AbstractContextManager[SparkSession]:
    raise AssertionError("Spark was started")


def test_the_jobs_of_a_lake(spark: SparkSession, shared_cluster: Cluster, tmp_path: Path) -> None:
    def job(name: str, hours: range | None = None) -> Result:
        wanted = Derive(tmp_path, TABLES_OF_JOB[name], hours, is_rebuild=name == "rebuild")
        return run_derive(wanted, runtime(spark))

    begin_ms = (hour_of(now_ms()) - 5) * HOUR_MS
    bodies = trace_bodies(random.Random(1), "lake-jobs", 30, begin_ms)
    topic, lake = "lake-jobs", Lake(tmp_path)
    send(shared_cluster, topic, bodies)
    half = len(bodies) // 2 + 1
    ingest = Ingest(
        Connection(namesrv=shared_cluster.namesrv_addr),
        tmp_path,
        topic,
        messages_per_batch=half,
        events_only=True,
    )
    run_ingest(ingest, runtime(spark))
    scattered = content(tmp_path)
    assert scattered[EVENTS]
    assert not any(scattered[name] for name in DERIVED)
    assert max(len(runs) for runs in lake.snapshot().parts[EVENTS].values()) == 2

    # Each job derives its own stale tables; a second run finds no work.
    for name, datasets in TABLES_OF_JOB.items():
        if name == "rebuild":
            continue
        assert job(name).hours
        assert all(content(tmp_path)[each] or each == "slow" for each in datasets)
        again = run_derive(Derive(tmp_path, datasets), Runtime(StopsAfter(None), no_spark, now_ms))
        assert again.note == "No hour has changed."
    made = content(tmp_path)

    # Tables derived again are equal, also from compacted events.
    compact = Compact(tmp_path, retain_days=30, folders_max=1)
    done = run_compact(compact, runtime(spark))
    assert done.rows
    assert run_compact(compact, Runtime(StopsAfter(None), no_spark, now_ms)).note
    assert content(tmp_path) == made
    hours = range(hour_of(begin_ms), hour_of(begin_ms) + 9)
    assert job("rollup", hours).hours
    assert job("edges", hours).hours
    assert content(tmp_path) == made
    assert job("slow", range(10)).note == "No events in this time."

    # Expired hours disappear; their files disappear one run later.
    # A rebuild of all hours gives the same tables.
    assert job("rebuild").hours
    assert content(tmp_path) == made
    past = Compact(tmp_path, retain_days=1)
    for _ in range(2):
        later = Runtime(StopsAfter(None), no_spark, lambda: now_ms() + 3 * DAY_MS)
        run_compact(past, later)
    assert not any(content(tmp_path).values())
    assert list(lake.on_disk(EVENTS)) == []


def test_hours_of_the_command_line() -> None:
    assert list(hours_between("1970-01-01T05", "1970-01-01T07")) == [5, 6, 7]
    for begin, end, said in (
        ("yesterday", "1970-01-01T05", "--from must be an hour like"),
        ("1970-01-01T05", "1970-01-01", "--to must be an hour like"),
        ("1970-13-01T05", "1970-13-01T05", "--from must be an hour like"),
        ("1970-01-01T05", "1970-01-01T04", "lies before"),
        ("1970-01-01T05", "2026-01-01T04", "are more than"),
    ):
        with pytest.raises(ClientError, match=said):
            hours_between(begin, end)
