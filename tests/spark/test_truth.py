"""A synthetic world with known truth through the jobs: store folder, stream, interrupted runs.

`make trace-truth` runs the same check with 5 million records and real kills.
"""

import random
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.processes import Cluster
from benchmarks.trace_check import differences
from benchmarks.trace_store import fill
from benchmarks.trace_truth import is_complete, make_world, serving
from benchmarks.trace_world import LIMITS, Truth
from spark_jobs.jobs.follow import run_follow
from spark_jobs.jobs.ingest import Ingest, run_ingest
from spark_jobs.jobs.run import Runtime
from spark_jobs.sources.connection import Connection
from tests.spark.stops import StopHere, StopsAfter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SEED = 20261121
RECORDS = 50_000
STREAM_SECONDS_MAX = 300.0
SMALL = {
    "mapped_file_size_commit_log": 8 * 1024 * 1024,
    "max_hash_slot_num": 5000,
    "max_index_num": 20_000,
}
SMALL_TEXT = "mappedFileSizeCommitLog=8388608\nmaxHashSlotNum=5000\nmaxIndexNum=20000\n"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def runtime(spark: SparkSession, stop_after: int | None = None) -> Runtime:
    return Runtime(StopsAfter(stop_after), lambda _: nullcontext(spark), now_ms)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """A folder with a store folder, and the expected truth of the world."""
    folder = tmp_path_factory.mktemp("world")
    made = make_world(SEED, RECORDS)
    fill(folder / "store", made, **SMALL)
    assert made.truth.records >= RECORDS
    assert made.truth.broken
    assert made.truth.untraced
    return folder, made.truth


@pytest.fixture(scope="module")
def cluster(world: tuple[Path, Truth]) -> Iterator[Cluster]:
    with serving(world[0], SMALL_TEXT) as served:
        yield served


def test_the_lake_of_a_store_folder_is_right(
    spark: SparkSession, world: tuple[Path, Truth], tmp_path: Path
) -> None:
    folder, truth = world
    job = Ingest(None, tmp_path, store=folder / "store", retry_times_max=LIMITS)
    for _ in range(2):  # the second run finds no new messages
        run_ingest(job, runtime(spark))
        assert differences(tmp_path, truth) == []


def test_the_lake_of_a_stream_is_right(
    spark: SparkSession, world: tuple[Path, Truth], cluster: Cluster, tmp_path: Path
) -> None:
    truth = world[1]
    deadline = time.monotonic() + STREAM_SECONDS_MAX

    def is_over() -> bool:
        assert time.monotonic() < deadline
        return is_complete(tmp_path, truth.bodies)

    job = Ingest(
        Connection(namesrv=cluster.namesrv_addr), tmp_path, messages_per_batch=truth.bodies // 2
    )
    run_follow(job, 1, runtime(spark), is_over=is_over)
    assert differences(tmp_path, truth) == []


def test_the_lake_of_interrupted_runs_is_right(
    spark: SparkSession, world: tuple[Path, Truth], cluster: Cluster, tmp_path: Path
) -> None:
    truth, luck = world[1], random.Random(SEED)
    job = Ingest(
        Connection(namesrv=cluster.namesrv_addr), tmp_path, messages_per_batch=truth.bodies // 3 + 1
    )
    for stop_after in (3, luck.randint(4, 6), None):
        try:
            run_ingest(job, runtime(spark, stop_after))
        except StopHere:
            assert stop_after is not None
        else:
            assert stop_after is None
    assert differences(tmp_path, truth) == []
