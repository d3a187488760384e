"""The ingest job: what is new in the trace topic becomes events in the lake, and then tables.

Each round reads a range of every queue, writes its events and commits them together with the
offsets reached (see `trace.lake`); then the tables of the hours that changed are made again. A run
that is killed has committed whole rounds and whole hours only, so the next one goes on without
gaps and without doubles.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from spark_jobs.lake_writer import LakeWriter, only_writer, sweep
from spark_jobs.offsets import EARLIEST, QueueRange, limited, next_offsets, ranges_to_read
from spark_jobs.progress import Progress, Stage
from spark_jobs.queues import TopicMissingError, fetch_bounds, fetch_retry_limits
from trace.lake import DERIVED, Lake, LakeError, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
MESSAGES_PER_ROUND: Final = 1_000_000
RETAIN_DAYS: Final = 30

SHORT_RUN_MESSAGES_MAX: Final = 20_000
STORE_BYTES_PER_TASK: Final = 64 * 1024 * 1024

#: Starts Spark, told whether the run will be a short one. Called only when there is something to
#: read: Spark takes seconds to start, and half a gigabyte.
StartSpark = Callable[[bool], AbstractContextManager["SparkSession"]]
#: Milliseconds since 1970.
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Ingest:
    """What to ingest, and where to."""

    namesrv: str
    lake: Path
    topic: str = TRACE_TOPIC
    messages_per_round: int = MESSAGES_PER_ROUND
    rows_per_task: int = 10_000
    retain_days: int = RETAIN_DAYS
    retry_timeout_ms: int = 60_000
    #: Leave the tables to the jobs that make them.
    events_only: bool = False
    #: A store folder to read in place of the cluster.
    store: Path | None = None
    #: What the messages of the store folder count as coming from.
    broker_name: str = "store"
    #: Retries before the dead letter, of groups whose clients set their own number.
    retry_times_max: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What a run did, over all its rounds."""

    rows: int = 0
    records: int = 0
    broken: int = 0
    lost: int = 0
    #: Hours whose tables were made.
    hours: int = 0
    #: Why there was nothing to do.
    note: str = ""


def run_ingest(job: Ingest, progress: Progress, start_spark: StartSpark, now_ms: Clock) -> Result:
    """Run the job to its end: everything that was in the topic when it began is in the lake then.

    Raises LakeError when another job holds the lake, ReadError when a queue cannot be read, and
    whatever `start_spark` raises.
    """
    result = Result()
    progress.enter(Stage.PLAN)
    with only_writer(Lake(job.lake)) as writer:
        snapshot = own_snapshot(writer.lake, job.topic)
        sweep(writer.lake, snapshot)
        ranges = [] if job.store else _new_ranges(job, snapshot, result)
        progress.rows_total = sum(part.count for part in ranges)
        has_stale = not job.events_only and any(snapshot.stale.values())
        if not progress.rows_total and not has_stale and not job.store:
            return result
        snapshot = with_retry_limits(snapshot, job)
        progress.enter(Stage.START)
        is_short = not job.store and progress.rows_total <= SHORT_RUN_MESSAGES_MAX
        with start_spark(is_short) as spark:
            progress.spark_is_at(spark.sparkContext.uiWebUrl)
            if job.store:
                snapshot = _read_store(spark, job, writer, snapshot, progress, result, now_ms)
            else:
                snapshot = _read(spark, job, writer, snapshot, ranges, progress, result, now_ms)
            make_tables(spark, job, writer, snapshot, progress, result, now_ms)
    return result


def own_snapshot(lake: Lake, topic: str) -> Snapshot:
    """The lake's last commit; raises LakeError when it holds another topic."""
    snapshot = lake.snapshot()
    if snapshot.topic not in {"", topic}:
        raise LakeError(f"The lake {lake.root} holds traces of {snapshot.topic}, not of {topic}.")
    return snapshot


def with_retry_limits(snapshot: Snapshot, job: Ingest) -> Snapshot:
    """What the cluster now says about the retries of its groups goes with the next commit."""
    limits = dict(snapshot.retry_times_max)
    if not job.store:
        limits |= fetch_retry_limits(job.namesrv, retry_timeout_ms=job.retry_timeout_ms)
    return msgspec.structs.replace(snapshot, retry_times_max=limits | dict(job.retry_times_max))


def make_tables(
    spark: "SparkSession",
    job: Ingest,
    writer: LakeWriter,
    snapshot: Snapshot,
    progress: Progress,
    result: Result,
    now_ms: Clock,
) -> Snapshot:
    """Make the tables of all stale hours, unless only events are wanted."""
    from spark_jobs.compact import forget_old
    from spark_jobs.derive import chunks_to_make, derive

    snapshot = forget_old(writer, snapshot, job.retain_days, now_ms())
    if job.events_only:
        return snapshot
    chunks = chunks_to_make(snapshot, DERIVED, None)
    result.hours += sum(map(len, chunks))
    return derive(spark, writer, snapshot, DERIVED, chunks, progress, now_ms)


def rounds_of(ranges: Sequence[QueueRange], rows_max: int) -> list[list[QueueRange]]:
    """The ranges cut into rounds of about `rows_max` messages, every queue in each."""
    rounds = []
    left = list(ranges)
    while any(part.count for part in left):
        now = limited(left, rows_max)
        rounds.append(now)
        left = [replace(part, start=done.end, lost=0) for part, done in zip(left, now, strict=True)]
    return rounds


def _new_ranges(job: Ingest, snapshot: Snapshot, result: Result) -> list[QueueRange]:
    """What is new in each queue; the result's note tells why there is nothing."""
    try:
        bounds = fetch_bounds(job.namesrv, job.topic, retry_timeout_ms=job.retry_timeout_ms)
    except TopicMissingError as missing:
        result.note = f"{missing} It appears with the first client that traces its messages."
        return []
    ranges = ranges_to_read(bounds, snapshot.offsets or EARLIEST)
    if not any(part.count for part in ranges):
        result.note = "Nothing new in the trace topic."
    return ranges


def _read(
    spark: "SparkSession",
    job: Ingest,
    writer: LakeWriter,
    snapshot: Snapshot,
    ranges: Sequence[QueueRange],
    progress: Progress,
    result: Result,
    now_ms: Clock,
) -> Snapshot:
    from spark_jobs.round import Planned, ingest_round
    from spark_jobs.watch import watching

    rounds = rounds_of(ranges, job.messages_per_round)
    for number, part in enumerate(rounds):
        progress.enter(Stage.READ, part=number, parts=len(rounds))
        rows, lost = sum(each.count for each in part), sum(each.lost for each in part)
        planned = Planned(next_offsets(part), rows, lost)
        rows_after = progress.rows + rows
        messages = _messages(spark, job, part)
        with watching(spark, progress):
            snapshot, tally = ingest_round(
                spark, job, writer, snapshot, messages, now_ms(), planned
            )
        progress.rows = rows_after
        result.rows += rows
        result.lost += lost
        result.records += tally.records
        result.broken += tally.broken
    return snapshot


def _read_store(
    spark: "SparkSession",
    job: Ingest,
    writer: LakeWriter,
    snapshot: Snapshot,
    progress: Progress,
    result: Result,
    now_ms: Clock,
) -> Snapshot:
    from pyspark.sql import functions as F

    from spark_jobs.commitlog import CommitLogDataSource
    from spark_jobs.round import MESSAGE_COLUMNS, ingest_round
    from spark_jobs.watch import watching

    spark.dataSource.register(CommitLogDataSource)
    messages = (
        spark.read.format("commitlog")
        .option("path", str(job.store))
        .option("topic", job.topic)
        .option("brokerName", job.broker_name)
        .option("columns", MESSAGE_COLUMNS)
        .option("maxBytesPerPartition", STORE_BYTES_PER_TASK)
        .load()
    )
    for queue_id, offset in snapshot.offsets.get(job.broker_name, {}).items():
        messages = messages.where(
            (F.col("queue_id") != queue_id) | (F.col("queue_offset") >= offset)
        )
    progress.enter(Stage.READ)
    with watching(spark, progress):
        snapshot, tally = ingest_round(spark, job, writer, snapshot, messages, now_ms())
    result.rows, result.records, result.broken = tally.rows, tally.records, tally.broken
    return snapshot


def _messages(spark: "SparkSession", job: Ingest, ranges: Sequence[QueueRange]) -> "DataFrame":
    from spark_jobs.round import MESSAGE_COLUMNS
    from spark_jobs.source import RocketMQDataSource

    spark.dataSource.register(RocketMQDataSource)
    starting = next_offsets(replace(part, end=part.start) for part in ranges)
    return (
        spark.read.format("rocketmq")
        .option("namesrv", job.namesrv)
        .option("topic", job.topic)
        .option("startingOffsets", json.dumps(starting))
        .option("endingOffsets", json.dumps(next_offsets(ranges)))
        .option("maxRowsPerPartition", job.rows_per_task)
        .option("retryTimeoutMs", job.retry_timeout_ms)
        .option("failOnDataLoss", "false")
        .option("columns", MESSAGE_COLUMNS)
        .load()
    )
