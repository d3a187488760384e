"""One micro-batch of the ingest job: messages in, events and next offsets out, in one commit."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spark_jobs.jobs.derive import present_hours, with_stale_hours
from spark_jobs.jobs.run import Run
from spark_jobs.jobs.write_events import QueueOffsets, Written
from spark_jobs.tables.message_flow import UNTRACED_AFTER_MS
from trace.lake import EVENTS, WITH_UNTRACED, HourIndex, Snapshot, extended_parts, hour_of


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Range of a micro-batch that was planned before the read."""

    #: Next offsets after the whole batch, by broker name and queue.
    offsets: QueueOffsets
    rows: int
    lost: int


def ingest_batch(
    run: Run[Any],
    topic: str,
    before: Snapshot,
    write: Callable[[Path], Written],
    planned: PlannedBatch | None = None,
) -> tuple[Snapshot, Written]:
    """Commit the events of a micro-batch; returns the new snapshot and the counts.

    `write` writes the events to a staging folder. Without `planned` the next offsets come from the
    messages.
    """
    lake = run.writer.lake
    now_ms, number = run.now_ms(), run.writer.next_run()
    written = write(lake.staging(number))
    hours = run.writer.place(EVENTS, number, written.files)
    parts = extended_parts(before.parts.get(EVENTS, {}), number, hours)
    watermark_ms = max(before.watermark_ms, written.watermark_ms)
    overdue = present_hours(before, newly_overdue_hours(before.watermark_ms, watermark_ms))
    reached = planned or PlannedBatch(written.offsets, written.messages, 0)
    snapshot = msgspec.structs.replace(
        before,
        topic=topic,
        run=number,
        committed_ms=now_ms,
        offsets=merged_offsets(before.offsets, reached.offsets),
        parts={**before.parts, EVENTS: parts},
        pending=[*before.pending, number],
        stale=with_stale_hours(before.stale, WITH_UNTRACED, overdue),
        watermark_ms=watermark_ms,
        messages=before.messages + reached.rows,
        records=before.records + written.records,
        broken_records=before.broken_records + written.broken,
        lost_messages=before.lost_messages + reached.lost,
    )
    lake.commit(snapshot)
    return snapshot, written


def newly_overdue_hours(watermark_before_ms: int, watermark_ms: int) -> Collection[HourIndex]:
    """The hours with sends that passed UNTRACED_AFTER_MS between the two watermarks."""
    if watermark_ms <= watermark_before_ms or not watermark_before_ms:
        return ()
    first = hour_of(watermark_before_ms - UNTRACED_AFTER_MS)
    return range(first, hour_of(watermark_ms - UNTRACED_AFTER_MS) + 1)


def merged_offsets(before: QueueOffsets, reached: QueueOffsets) -> QueueOffsets:
    """`before` updated by `reached`; an unreachable broker or queue keeps its old offset."""
    return before | {name: before.get(name, {}) | queues for name, queues in reached.items()}
