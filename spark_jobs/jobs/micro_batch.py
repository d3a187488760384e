"""One micro-batch of the ingest job: messages in, events and next offsets out, in one commit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.jobs.run import Run
from spark_jobs.spark.lake_frames import read_events, write_hours
from spark_jobs.tables.decode import BROKEN, decode_events
from spark_jobs.tables.facts import hours_around
from spark_jobs.tables.stale_hours import invalidated_hours, newly_overdue_hours
from trace.lake import DERIVED, EVENTS, HourIndex, Snapshot, extended_parts

#: Columns of the data source that `ingest_batch` reads.
MESSAGE_COLUMNS = "broker_name,queue_id,queue_offset,store_timestamp,body"

QueueOffsets = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Range of a micro-batch that was planned before the read."""

    #: Next offsets after the whole batch, by broker name and queue.
    offsets: QueueOffsets
    rows: int
    lost: int


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Counts of the events that a micro-batch wrote."""

    #: One after the last message with a record, by broker name and queue.
    offsets: QueueOffsets
    rows: int
    records: int
    broken: int
    watermark_ms: int


def ingest_batch(
    run: Run[Any],
    topic: str,
    before: Snapshot,
    messages: DataFrame,
    planned: PlannedBatch | None = None,
) -> tuple[Snapshot, BatchCounts]:
    """Write the events of `messages` and commit; returns the new snapshot and the counts.

    Without `planned` the next offsets come from the messages.
    """
    session, lake = run.session, run.writer.lake
    now_ms, number = run.now_ms(), run.writer.next_run()
    written = write_hours(decode_events(messages), lake, EVENTS, number)
    new = read_events(session, lake, {hour: [number] for hour in written}, written)
    counts = BatchCounts({}, 0, 0, 0, 0) if new is None else _counts(new)
    parts = extended_parts(before.parts.get(EVENTS, {}), number, written)
    watermark_ms = max(before.watermark_ms, counts.watermark_ms)
    changed = set(newly_overdue_hours(before.watermark_ms, watermark_ms))
    if new is not None:
        older = read_events(session, lake, before.parts.get(EVENTS, {}), hours_around(written))
        changed |= {row.hour for row in invalidated_hours(new, older).collect()}
    reached = planned or PlannedBatch(counts.offsets, counts.rows, 0)
    snapshot = msgspec.structs.replace(
        before,
        topic=topic,
        run=number,
        committed_ms=now_ms,
        offsets=merged_offsets(before.offsets, reached.offsets),
        parts={**before.parts, EVENTS: parts},
        stale=with_stale_hours(before.stale, changed & parts.keys()),
        watermark_ms=watermark_ms,
        messages=before.messages + reached.rows,
        records=before.records + counts.records,
        broken_records=before.broken_records + counts.broken,
        lost_messages=before.lost_messages + reached.lost,
    )
    lake.commit(snapshot)
    return snapshot, counts


def _counts(new: DataFrame) -> BatchCounts:
    queues = (
        new.groupBy("broker", "queue_id")
        .agg(
            (F.max("queue_offset") + 1).alias("next_offset"),
            F.count_if(F.col("record_index") == 0).alias("messages"),
            F.count("*").alias("records"),
            F.count_if(F.col("kind") == BROKEN).alias("broken"),
            F.max("stored_ms").alias("watermark_ms"),
        )
        .collect()
    )
    offsets: QueueOffsets = {}
    for row in queues:
        offsets.setdefault(row.broker, {})[row.queue_id] = row.next_offset
    return BatchCounts(
        offsets,
        rows=sum(row.messages for row in queues),
        records=sum(row.records for row in queues),
        broken=sum(row.broken for row in queues),
        watermark_ms=max((row.watermark_ms for row in queues), default=0),
    )


def with_stale_hours(
    stale: Mapping[str, list[HourIndex]], hours: Iterable[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after the events of `hours` changed."""
    return {name: sorted({*stale.get(name, ()), *hours}) for name in DERIVED}


def merged_offsets(before: QueueOffsets, reached: QueueOffsets) -> QueueOffsets:
    """`before` updated by `reached`; an unreachable broker or queue keeps its old offset."""
    return before | {name: before.get(name, {}) | queues for name, queues in reached.items()}
