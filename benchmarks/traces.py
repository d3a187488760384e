"""Trace analytics: `python -m benchmarks.traces [--records N]`, or `measure` from `make bench`.

    decode-python    bodies decoded by `trace.codec`, one process, without output
    pull-bare        pulls of the trace topic by one process, bodies unread
    source-read      the data source's reader alone, one process, Arrow batches discarded
    ingest           `spark_jobs ingest --events-only` on local[2], from the broker
    rollup           `spark_jobs rollup` on local[2] over the same lake
    duckdb-rollup    the counts and percentiles per minute by DuckDB alone on the same Parquet
    appearance       from a message's consumption to its row in the table `minute`
    click-cold       from the click to the finished job, 1,000 new trace messages, no Spark runs yet
    click-warm       the same with the Spark of an earlier job
    spark-idle       memory of the Spark service after these jobs

Rates are trace records per second (pulls: messages per second). Spark's start is excluded and
reported separately, in seconds. CPU times and memory are of Spark with its Python processes; the
CPU time per record depends less on the load of the machine than the rate.
"""

import asyncio
import json
import mmap
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.processes import Cluster
from benchmarks.trace_check import rows
from benchmarks.trace_clicks import clicks
from benchmarks.trace_store import fill
from benchmarks.trace_truth import ROOT, is_complete, make_world, serving
from benchmarks.usage import MB, Usage
from core_broker.client import AdminClient, Message, PullStatus
from core_broker.message.topics import TRACE_TOPIC
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.log_scan import ScannedRecord, log_slices, scan
from spark_jobs.sources.offsets import QueueRange
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.partition_reader import read_range
from spark_jobs.sources.queues import fetch_bounds
from trace.codec import Pub, SubAfter, SubBefore, decode_trace, encode_trace
from trace.lake import EVENTS, MINUTE, Lake

SEED: Final = 20261121
#: Enough for half a minute of work, beside which the first task of a Python process is short.
RECORDS: Final = 5_000_000
MASTER: Final = "local[2]"
PULLS_TOGETHER: Final = 8
PULL_COUNT: Final = 32
APPEARANCES: Final = 20
APPEARANCE_SECONDS_MAX: Final = 120.0
SLICE_BYTES: Final = 64 * 1024 * 1024
NARROW: Final = ("broker_name", "queue_id", "queue_offset", "store_timestamp", "body")


def measure(folder: Path, records: int = RECORDS) -> dict[str, Any]:
    """All metrics, from a new world in `folder`."""
    world = make_world(SEED, records)
    fill(folder / "store", world)
    truth = world.truth
    figures: dict[str, Any] = {"records": truth.records, "messages": truth.bodies}
    figures["decode-python"] = decode_python(folder, truth.records)
    with serving(folder) as cluster:
        figures["pull-bare"] = timed(truth.bodies, lambda: asyncio.run(pull_bare(cluster)))
        source_read(cluster)  # imports Arrow, as a warm worker has
        figures["source-read"] = timed(truth.bodies, lambda: source_read(cluster))
        lake = folder / "lake"
        source = ("ingest", "-n", cluster.namesrv_addr, "--events-only")
        figures["ingest"] = spark_job(folder, lake, truth.records, *source)
        figures["rollup"] = spark_job(folder, lake, truth.records, "rollup")
        figures["duckdb-rollup"] = timed(truth.records, lambda: duckdb_rollup(lake))
        figures["appearance"] = appearance(folder, lake, cluster, truth.bodies)
    figures |= clicks(folder)
    return figures


def timed(count: int, work: Callable[[], object]) -> dict[str, float]:
    """Seconds and rate of one run."""
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    return {"seconds": round(took, 2), "rate": round(count / took)}


def decode_python(folder: Path, records: int) -> dict[str, float]:
    """One process with the Python codec, without the time to read the bodies."""
    took = 0.0
    for part in log_slices(folder / "store", SLICE_BYTES):
        with Path(part.path).open("rb") as file:
            log = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            found = scan(part, log, check_crc=False)
            bodies = [each.body for each in found if isinstance(each, ScannedRecord)]
        began = time.perf_counter()
        for body in bodies:
            decode_trace(body)
        took += time.perf_counter() - began
    return {"seconds": round(took, 2), "rate": round(records / took)}


async def pull_bare(cluster: Cluster) -> None:
    """The pull rate of one core without any processing."""
    async with AdminClient(cluster.namesrv_addr) as admin:
        (queue,) = await topic_ends(admin, cluster)
        step = PULL_COUNT * PULLS_TOGETHER
        for begin in range(0, queue, step):
            starts = range(begin, min(begin + step, queue), PULL_COUNT)
            answers = await asyncio.gather(
                *(
                    admin.pull_raw(cluster.broker_addr, TRACE_TOPIC, 0, start, PULL_COUNT)
                    for start in starts
                )
            )
            assert all(answer.status is PullStatus.FOUND for answer in answers)


async def topic_ends(admin: AdminClient, cluster: Cluster) -> list[int]:
    """The next offset of each queue."""
    stats = await admin.topic_stats(cluster.broker_addr, TRACE_TOPIC)
    return [offsets.max_offset for offsets in stats.values()]


def source_read(cluster: Cluster) -> None:
    """The reader as in a Spark worker."""
    options = ReadOptions(namesrv=cluster.namesrv_addr, topic=TRACE_TOPIC)
    for queue in fetch_bounds(Connection(namesrv=cluster.namesrv_addr), TRACE_TOPIC):
        part = QueueRange(queue.broker_name, queue.queue_id, queue.offset_min, queue.offset_max)
        for _ in read_range(options, part, NARROW):
            pass


def spark_job(folder: Path, lake: Path, records: int, *arguments: str) -> dict[str, float]:
    """A job as a program; the time counts from the first stage after the start of Spark."""
    command = [
        *(sys.executable, "-m", "spark_jobs", *arguments, "--lake", str(lake)),
        *("--run-dir", str(folder / "run"), "--master", MASTER, "--progress-json"),
        *("--conf", "spark.ui.enabled=false"),
    ]
    began = ready = time.perf_counter()
    start_cpu_s = 0.0
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as job,
        Usage(job.pid) as usage,
    ):
        assert job.stdout is not None
        for line in job.stdout:
            if ready == began and json.loads(line).get("stage") in {"read", "rollup"}:
                ready, start_cpu_s = time.perf_counter(), usage.cpu_seconds
        ended = time.perf_counter()
    if job.returncode != 0:
        raise SystemExit(f"{arguments[0]} failed: {line}")
    return {
        "seconds": round(ended - ready, 2),
        "start_seconds": round(ready - began, 2),
        "rate": round(records / (ended - ready)),
        "cpu_us_per_record": round((usage.cpu_seconds - start_cpu_s) / records * 1_000_000, 2),
        "memory_max_mb": usage.memory_bytes_max // MB,
    }


def duckdb_rollup(lake: Path) -> None:
    """The same aggregates by DuckDB, without writing them."""
    rows(Lake(lake), EVENTS, DUCKDB_SENDS)
    rows(Lake(lake), EVENTS, DUCKDB_CONSUMPTION)


DUCKDB_SENDS: Final = """
    SELECT event_ms // 60000 AS minute, topic, group_name, msg_type, count(*), sum(body_bytes),
           count(*) FILTER (NOT success), quantile_cont(cost_ms, [0.5, 0.95, 0.99]), max(cost_ms)
    FROM (SELECT DISTINCT event_ms, topic, group_name, msg_type, msg_id, body_bytes, cost_ms,
                          success FROM {} WHERE kind = 'Pub')
    GROUP BY ALL
"""
DUCKDB_CONSUMPTION: Final = """
    WITH sent AS (
        SELECT msg_id, min_by(topic, event_ms) AS topic, min_by(group_name, event_ms) AS producer,
               min_by(msg_type, event_ms) AS msg_type, min(event_ms) AS sent_ms,
               min(event_ms + cost_ms // 2) FILTER (success) AS stored_ms
        FROM {} WHERE kind = 'Pub' GROUP BY msg_id
    ), attempts AS (
        SELECT msg_id, request_id, max(group_name) AS consumer,
               min(event_ms) FILTER (kind = 'SubBefore') AS start_ms, max(retry_times) AS retry,
               min(event_ms) FILTER (kind = 'SubAfter') AS end_ms, bool_or(success) AS success
        FROM {} WHERE kind IN ('SubBefore', 'SubAfter') GROUP BY msg_id, request_id
    ), placed AS (
        SELECT *, row_number() OVER (PARTITION BY msg_id, consumer ORDER BY retry) AS place
        FROM attempts
    )
    SELECT start_ms // 60000 AS minute, topic, producer, consumer, msg_type, count(*),
           count(*) FILTER (success), count(*) FILTER (NOT success), count(*) FILTER (retry > 0),
           quantile_cont(start_ms - stored_ms, [0.5, 0.95, 0.99]) FILTER (place = 1),
           quantile_cont(end_ms - sent_ms, [0.5, 0.95, 0.99]) FILTER (success)
    FROM placed LEFT JOIN sent USING (msg_id) GROUP BY ALL
"""


def appearance(folder: Path, lake: Path, cluster: Cluster, messages: int) -> dict[str, float]:
    """Follow the topic, send the records of a consumption, and wait for its row in `minute`; again
    and again. The jobs before have brought `messages` into the lake.

    The delay of a client before it sends its records (5 s at most) is not included.
    """
    command = [
        *(sys.executable, "-m", "spark_jobs", "ingest", "-n", cluster.namesrv_addr),
        *("--follow", "1", "--lake", str(lake), "--run-dir", str(folder / "run")),
        *("--master", MASTER, "--conf", "spark.ui.enabled=false"),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as job:
        try:
            wait_until(partial(is_complete, lake, messages))
            seconds = []
            for number in range(APPEARANCES):
                group = f"appearing-{number}"
                asyncio.run(send_traces(cluster, group))
                began = time.perf_counter()
                wait_until(partial(has_group, lake, group))
                seconds.append(round(time.perf_counter() - began, 2))
        finally:
            job.kill()
    levels = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "count": APPEARANCES,
        "p50_seconds": round(levels[49], 2),
        "p95_seconds": round(levels[94], 2),
        "max_seconds": max(seconds),
    }


def has_group(lake: Path, group: str) -> bool:
    """Whether the table `minute` has a row of a consumer group."""
    found = rows(Lake(lake), MINUTE, "SELECT DISTINCT consumer_group FROM {}")
    return (group,) in found


async def send_traces(cluster: Cluster, group: str) -> None:
    """Send the records of one message, produced and consumed now."""
    now_ms = time.time_ns() // 1_000_000
    name = f"message-of-{group}"
    body = encode_trace(
        [
            Pub(timestamp_ms=now_ms - 5, group=group, topic="appearing", msg_id=name),
            SubBefore(timestamp_ms=now_ms, group=group, request_id="r", msg_id=name),
            SubAfter(
                request_id="r",
                msg_id=name,
                cost_ms=1,
                success=True,
                context_code=0,
                timestamp_ms=now_ms + 1,
                group=group,
            ),
        ]
    )
    async with AdminClient(cluster.namesrv_addr) as admin:
        await admin.send(cluster.broker_addr, Message(TRACE_TOPIC, body), 0)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + APPEARANCE_SECONDS_MAX * 5
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("the consumption did not appear in the table minute")
        time.sleep(0.05)


@click.command(context_settings={"show_default": True})
@click.option("--records", type=int, default=RECORDS, help="Minimum number of trace records.")
def main(records: int) -> None:
    """Measure trace analytics, and print one JSON object."""
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        print(json.dumps(measure(folder, records), indent=2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
