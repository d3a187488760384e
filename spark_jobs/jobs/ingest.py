"""The ingest job: read new messages of the trace topic, write events to the lake, derive tables.

Each micro-batch reads a range of every queue, writes the events and commits them together with the
offsets reached (see `trace.lake`). Then the job derives the tables of the changed hours. A killed
run has committed whole micro-batches and whole hours only, so the next run continues without gaps
and without duplicates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from spark_jobs.jobs.retention import drop_expired_hours
from spark_jobs.jobs.run import Result, Run, Runtime
from spark_jobs.jobs.subscriptions import with_subscriptions
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.log_scan import LogSlice, log_slices
from spark_jobs.sources.offsets import (
    EARLIEST,
    QueueRange,
    limited,
    next_offsets,
    ranges_to_read,
    slices,
)
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.queues import TopicMissingError, fetch_bounds, fetch_retry_limits
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.progress import Stage
from trace.attempts import RETRY_TIMES_MAX_DEFAULT
from trace.lake import Lake, LakeError, Snapshot

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from spark_jobs.jobs.write_events import Reader
    from spark_jobs.sources.commitlog import LogOptions

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
MESSAGES_PER_BATCH: Final = 1_000_000
RETAIN_DAYS: Final = 30

SHORT_RUN_MESSAGES_MAX: Final = 20_000
STORE_BYTES_PER_TASK: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ingest:
    """Options of the job: source, lake and limits."""

    #: The cluster; None when `store` is given.
    connection: Connection | None
    lake: Path
    topic: str = TRACE_TOPIC
    messages_per_batch: int = MESSAGES_PER_BATCH
    rows_per_task: int = 10_000
    retain_days: int = RETAIN_DAYS
    #: Write events only; the jobs rollup, edges and slow derive the tables.
    events_only: bool = False
    #: Store folder of a broker, read in place of the cluster.
    store: Path | None = None
    #: Broker name that the events of the store folder get.
    broker_name: str = "store"
    #: Retries before the dead letter, for groups whose clients set their own limit.
    retry_times_max: Mapping[str, int] = field(default_factory=dict)


def run_ingest(job: Ingest, runtime: Runtime) -> Result:
    """Run the job to its end: all messages present at the start are in the lake afterwards.

    Raises LakeError when another job holds the lake, ReadError when a queue cannot be read, and
    the errors of `start_spark`.
    """
    result, progress = Result(), runtime.progress
    progress.enter(Stage.PLAN)
    with exclusive_writer(Lake(job.lake)) as writer:
        snapshot = snapshot_of_topic(writer.lake, job.topic)
        delete_unreferenced(writer.lake, snapshot)
        snapshot = with_subscriptions(writer, snapshot, job.connection, runtime.now_ms())
        ranges = new_ranges(job, job.connection, snapshot, result) if job.connection else []
        progress.rows_total = sum(part.count for part in ranges)
        has_stale = not job.events_only and has_work(snapshot)
        if not progress.rows_total and not has_stale and not job.store:
            return result
        snapshot = with_retry_limits(snapshot, job)
        is_short = not job.store and progress.rows_total <= SHORT_RUN_MESSAGES_MAX
        with runtime.start(job, writer, result, is_short=is_short) as run:
            if job.store:
                snapshot = _read_store(run, snapshot)
            else:
                snapshot = read_cluster(run, snapshot, ranges)
            make_tables(run, snapshot)
    return result


def snapshot_of_topic(lake: Lake, topic: str) -> Snapshot:
    """The last commit of the lake; raises LakeError when the lake holds another topic."""
    snapshot = lake.snapshot()
    if snapshot.topic not in {"", topic}:
        raise LakeError(f"The lake {lake.root} holds traces of {snapshot.topic}, not of {topic}.")
    return snapshot


def with_retry_limits(snapshot: Snapshot, job: Ingest) -> Snapshot:
    """`snapshot` with the current retry limits of the groups; the next commit stores them."""
    limits = dict(snapshot.retry_times_max)
    if job.connection:
        limits |= fetch_retry_limits(job.connection)
    limits |= job.retry_times_max
    others = {group: n for group, n in limits.items() if n != RETRY_TIMES_MAX_DEFAULT}
    return msgspec.structs.replace(snapshot, retry_times_max=others)


def has_work(snapshot: Snapshot) -> bool:
    """Whether some facts or tables are not derived yet."""
    return bool(snapshot.pending) or any(snapshot.stale.values())


def make_tables(run: Run[Ingest], snapshot: Snapshot) -> Snapshot:
    """Derive all stale tables unless `events_only` is set; drop expired hours, merge small runs."""
    from spark_jobs.jobs.derive import TABLES_OF_FACTS, derive
    from spark_jobs.jobs.merge import merge_small_runs

    job = run.options
    snapshot = with_subscriptions(run.writer, snapshot, job.connection, run.now_ms())
    if not job.events_only:
        snapshot = derive(run, snapshot, TABLES_OF_FACTS)
    snapshot = drop_expired_hours(run.writer, snapshot, job.retain_days, run.now_ms())
    return merge_small_runs(run, snapshot)


def batches_of(ranges: Sequence[QueueRange], rows_max: int) -> list[list[QueueRange]]:
    """The ranges split into micro-batches of about `rows_max` messages; each has every queue."""
    batches = []
    left = list(ranges)
    while any(part.count for part in left):
        batch = limited(left, rows_max)
        batches.append(batch)
        left = [
            replace(part, start=done.end, lost=0) for part, done in zip(left, batch, strict=True)
        ]
    return batches


def new_ranges(
    job: Ingest, connection: Connection, snapshot: Snapshot, result: Result
) -> list[QueueRange]:
    """The unread range of each queue; sets the note of `result` when there is none."""
    try:
        bounds = fetch_bounds(connection, job.topic)
    except TopicMissingError as missing:
        result.note = f"{missing} The first client that traces its messages creates the topic."
        return []
    ranges = ranges_to_read(bounds, snapshot.offsets or EARLIEST)
    if not any(part.count for part in ranges):
        result.note = "Nothing new in the trace topic."
    return ranges


def read_cluster(run: Run[Ingest], snapshot: Snapshot, ranges: Sequence[QueueRange]) -> Snapshot:
    from spark_jobs.jobs.micro_batch import PlannedBatch, ingest_batch
    from spark_jobs.jobs.write_events import write_events_of
    from spark_jobs.spark.task_monitor import monitor_tasks

    job, progress, result = run.options, run.progress, run.result
    batches = batches_of(ranges, job.messages_per_batch)
    for number, batch in enumerate(batches):
        progress.enter(Stage.READ, part=number, parts=len(batches))
        rows, lost = sum(part.count for part in batch), sum(part.lost for part in batch)
        planned = PlannedBatch(next_offsets(batch), rows, lost)
        rows_after = progress.rows + rows
        write = partial(write_events_of, run.session, _readers(job, batch))
        with monitor_tasks(run.session, progress, rows=rows):
            snapshot, counts = ingest_batch(run, job.topic, snapshot, write, planned)
        progress.rows = rows_after
        result.rows += rows
        result.lost += lost
        result.records += counts.records
        result.broken += counts.broken
    return snapshot


def _read_store(run: Run[Ingest], snapshot: Snapshot) -> Snapshot:
    from spark_jobs.jobs.micro_batch import ingest_batch
    from spark_jobs.jobs.write_events import write_events_of
    from spark_jobs.spark.task_monitor import monitor_tasks

    job, result = run.options, run.result
    reached = snapshot.offsets.get(job.broker_name, {})
    run.progress.enter(Stage.READ)
    with monitor_tasks(run.session, run.progress):
        write = partial(write_events_of, run.session, _store_readers(job, reached))
        snapshot, counts = ingest_batch(run, job.topic, snapshot, write)
    result.rows, result.records, result.broken = counts.messages, counts.records, counts.broken
    return snapshot


def _store_readers(job: Ingest, reached: Mapping[int, int]) -> "list[Reader]":
    from spark_jobs.sources.commitlog import LogOptions
    from trace.columns import MESSAGE_COLUMNS

    assert job.store is not None
    options = LogOptions(
        str(job.store.absolute()),
        frozenset({job.topic}),
        columns=MESSAGE_COLUMNS,
        broker_name=job.broker_name,
    )
    parts = log_slices(job.store, STORE_BYTES_PER_TASK)
    return [partial(_read_slice, options, reached, part) for part in parts]


def _read_slice(
    options: "LogOptions", reached: Mapping[int, int], part: LogSlice
) -> "Iterator[RecordBatch]":
    """The messages of a slice behind the offsets `reached` of their queues."""
    import pyarrow.compute as pc

    from spark_jobs.sources.commitlog import read_log_slice

    for batch in read_log_slice(options, options.columns, part):
        messages = batch
        for queue_id, offset in reached.items():
            is_other = pc.not_equal(messages.column("queue_id"), queue_id)
            is_new = pc.greater_equal(messages.column("queue_offset"), offset)
            messages = messages.filter(pc.or_(is_other, is_new))
        if messages.num_rows:
            yield messages


def _readers(job: Ingest, ranges: Sequence[QueueRange]) -> "list[Reader]":
    from spark_jobs.sources.partition_reader import read_range
    from trace.columns import MESSAGE_COLUMNS

    assert job.connection is not None
    options = ReadOptions(topic=job.topic, fail_on_data_loss=False, **asdict(job.connection))
    parts = slices(ranges, job.rows_per_task)
    return [partial(read_range, options, part, MESSAGE_COLUMNS) for part in parts]
