"""One micro-batch of the ingest job: messages in, events and next offsets out, in one commit."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spark_jobs.jobs.run import Run
from spark_jobs.jobs.write_events import QueueOffsets, Written
from spark_jobs.spark.lake_frames import read_events
from spark_jobs.tables.facts import hours_around
from spark_jobs.tables.stale_hours import invalidated_hours, newly_overdue_hours
from trace.lake import DERIVED, EVENTS, HourIndex, Snapshot, extended_parts


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
    changed = {*written.changed_hours, *newly_overdue_hours(before.watermark_ms, watermark_ms)}
    new = read_events(run.session, lake, {hour: [number] for hour in hours}, hours)
    older = read_events(run.session, lake, before.parts.get(EVENTS, {}), hours_around(hours))
    if new is not None and older is not None:
        changed |= {row.hour for row in invalidated_hours(new, older).collect()}
    reached = planned or PlannedBatch(written.offsets, written.messages, 0)
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
        records=before.records + written.records,
        broken_records=before.broken_records + written.broken,
        lost_messages=before.lost_messages + reached.lost,
    )
    lake.commit(snapshot)
    return snapshot, written


def with_stale_hours(
    stale: Mapping[str, list[HourIndex]], hours: Iterable[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after the events of `hours` changed."""
    return {name: sorted({*stale.get(name, ()), *hours}) for name in DERIVED}


def merged_offsets(before: QueueOffsets, reached: QueueOffsets) -> QueueOffsets:
    """`before` updated by `reached`; an unreachable broker or queue keeps its old offset."""
    return before | {name: before.get(name, {}) | queues for name, queues in reached.items()}
