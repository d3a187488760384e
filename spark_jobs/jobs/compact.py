"""The compact job: merge small files of an hour into one file, and drop expired hours.

Each ingest run adds a folder to every hour with new events. The job rewrites an hour with more than
FOLDERS_MAX folders as one folder; the old files stay until the next run, for open readers.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from spark_jobs.jobs.retention import drop_expired_hours
from spark_jobs.jobs.run import Result, Run, Runtime
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.progress import Stage
from trace.lake import EVENTS, HourIndex, Lake, Parts, Snapshot, replaced_parts

#: Default maximum of folders in an hour of events.
FOLDERS_MAX: Final = 4
#: Maximum of files in an hour of events.
FILES_MAX: Final = 8
HOURS_PER_CHUNK: Final = 24


@dataclass(frozen=True, slots=True)
class Compact:
    """Options of the job."""

    lake: Path
    retain_days: int
    folders_max: int = FOLDERS_MAX


def run_compact(job: Compact, runtime: Runtime) -> Result:
    """Run the job to its end. The rows of the result are the rewritten events."""
    result = Result()
    runtime.progress.enter(Stage.PLAN)
    with exclusive_writer(Lake(job.lake)) as writer:
        snapshot = writer.lake.snapshot()
        delete_unreferenced(writer.lake, snapshot)
        snapshot = drop_expired_hours(writer, snapshot, job.retain_days, runtime.now_ms())
        parts = snapshot.parts.get(EVENTS, {})
        hours = fragmented_hours(writer.lake, parts, job.folders_max)
        if not hours:
            result.note = "No hour has many small files."
            return result
        with runtime.start(job, writer, result, is_short=False) as run:
            chunks = [
                hours[begin : begin + HOURS_PER_CHUNK]
                for begin in range(0, len(hours), HOURS_PER_CHUNK)
            ]
            for number, chunk in enumerate(chunks):
                run.progress.enter(Stage.COMPACT, part=number, parts=len(chunks))
                snapshot = _rewrite(run, snapshot, chunk)
    return result


def fragmented_hours(lake: Lake, parts: Parts, folders_max: int) -> list[HourIndex]:
    """The hours whose events are in too many folders or files."""
    return [
        hour
        for hour, runs in sorted(parts.items())
        if len(runs) > folders_max
        or sum(
            1 for folder in lake.folders(EVENTS, parts, [hour]) for _ in folder.glob("*.parquet")
        )
        > FILES_MAX
    ]


def _rewrite(run: Run[Compact], snapshot: Snapshot, hours: Collection[HourIndex]) -> Snapshot:
    from spark_jobs.spark.lake_frames import read_events, write_hours
    from spark_jobs.spark.task_monitor import monitor_tasks

    session, lake = run.session, run.writer.lake
    now_ms, number = run.now_ms(), run.writer.next_run()
    parts = snapshot.parts[EVENTS]
    events = read_events(session, lake, parts, hours)
    written: Iterable[HourIndex] = ()
    if events is not None:
        with monitor_tasks(session, run.progress):
            written = write_hours(events, run.writer, EVENTS, number)
        rewritten = read_events(session, lake, {hour: [number] for hour in written}, written)
        run.result.rows += rewritten.count() if rewritten is not None else 0
    snapshot = msgspec.structs.replace(
        snapshot,
        run=number,
        committed_ms=now_ms,
        parts={**snapshot.parts, EVENTS: replaced_parts(parts, number, written, redone=hours)},
    )
    lake.commit(snapshot)
    run.result.hours += len(hours)
    return snapshot
