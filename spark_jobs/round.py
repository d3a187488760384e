"""One round of the ingest job: messages in, events and the offsets reached out, in one commit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.affected import affected_hours, newly_due_hours
from spark_jobs.decode import BROKEN, decode_events
from spark_jobs.lake_frames import around, read_events, write_hours
from spark_jobs.lake_writer import LakeWriter
from trace.lake import DERIVED, EVENTS, HourIndex, Snapshot, extended_parts

if TYPE_CHECKING:
    from spark_jobs.ingest import Ingest

#: What the round needs of each message.
MESSAGE_COLUMNS = "broker_name,queue_id,queue_offset,store_timestamp,body"

QueueOffsets = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Planned:
    """What a round was to read, where that was known before."""

    #: Where to go on when all of it is read.
    offsets: QueueOffsets
    rows: int
    lost: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What a round really wrote."""

    #: One after the last message with a record, by broker name and queue.
    offsets: QueueOffsets
    rows: int
    records: int
    broken: int
    told_until_ms: int


def ingest_round(
    spark: SparkSession,
    job: "Ingest",
    writer: LakeWriter,
    before: Snapshot,
    messages: DataFrame,
    now_ms: int,
    planned: Planned | None = None,
) -> tuple[Snapshot, Tally]:
    """Write the events of `messages` and commit them; returns what is committed then.

    Without `planned` the messages themselves tell how far they reach.
    """
    run = writer.next_run()
    written = write_hours(decode_events(messages), writer.lake, EVENTS, run)
    mine = {hour: [run] for hour in written}
    new = read_events(spark, writer.lake, mine, written)
    tally = Tally({}, 0, 0, 0, 0) if new is None else _tally(new)
    parts = extended_parts(before.parts.get(EVENTS, {}), run, written)
    told_until_ms = max(before.told_until_ms, tally.told_until_ms)
    changed = set(newly_due_hours(before.told_until_ms, told_until_ms))
    if new is not None:
        older = read_events(spark, writer.lake, before.parts.get(EVENTS, {}), around(written))
        changed |= {row.hour for row in affected_hours(new, older).collect()}
    reached = planned or Planned(tally.offsets, tally.rows, 0)
    snapshot = msgspec.structs.replace(
        before,
        topic=job.topic,
        run=run,
        committed_ms=now_ms,
        offsets=merged(before.offsets, reached.offsets),
        parts={**before.parts, EVENTS: parts},
        stale=with_stale(before.stale, changed & parts.keys()),
        told_until_ms=told_until_ms,
        messages=before.messages + reached.rows,
        records=before.records + tally.records,
        broken_records=before.broken_records + tally.broken,
        lost_messages=before.lost_messages + reached.lost,
    )
    writer.lake.commit(snapshot)
    return snapshot, tally


def _tally(new: DataFrame) -> Tally:
    queues = (
        new.groupBy("broker", "queue_id")
        .agg(
            (F.max("queue_offset") + 1).alias("next_offset"),
            F.count_if(F.col("record_index") == 0).alias("messages"),
            F.count("*").alias("records"),
            F.count_if(F.col("kind") == BROKEN).alias("broken"),
            F.max("stored_ms").alias("told_ms"),
        )
        .collect()
    )
    offsets: QueueOffsets = {}
    for row in queues:
        offsets.setdefault(row.broker, {})[row.queue_id] = row.next_offset
    return Tally(
        offsets,
        rows=sum(row.messages for row in queues),
        records=sum(row.records for row in queues),
        broken=sum(row.broken for row in queues),
        told_until_ms=max((row.told_ms for row in queues), default=0),
    )


def with_stale(
    stale: Mapping[str, list[HourIndex]], hours: Iterable[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after the events of `hours` changed."""
    return {name: sorted({*stale.get(name, ()), *hours}) for name in DERIVED}


def merged(before: QueueOffsets, reached: QueueOffsets) -> QueueOffsets:
    """A broker or queue that is away for now keeps its place."""
    return before | {name: before.get(name, {}) | queues for name, queues in reached.items()}
