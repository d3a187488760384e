"""The compact job: many small files become one, and hours past their time are let go.

Each ingest run adds a folder to every hour it has events of. An hour with more folders than
FOLDERS_MAX is written anew as one; readers keep the old files until the run after.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from spark_jobs.ingest import Clock, Result, StartSpark
from spark_jobs.lake_writer import LakeWriter, only_writer, sweep
from spark_jobs.progress import Progress, Stage
from trace.lake import EVENTS, HourIndex, Lake, Parts, Snapshot, hour_of, replaced_parts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

#: So many folders an hour of events may have, unless told otherwise.
FOLDERS_MAX: Final = 4
#: So many files an hour of events may have.
FILES_MAX: Final = 8
HOURS_PER_CHUNK: Final = 24


@dataclass(frozen=True, slots=True)
class Compact:
    """What to tidy up."""

    lake: "Path"
    retain_days: int
    folders_max: int = FOLDERS_MAX


def run_compact(job: Compact, progress: Progress, start_spark: StartSpark, now_ms: Clock) -> Result:
    """Run the job to its end. The result's rows are the events written anew."""
    result = Result()
    progress.enter(Stage.PLAN)
    with only_writer(Lake(job.lake)) as writer:
        snapshot = writer.lake.snapshot()
        sweep(writer.lake, snapshot)
        snapshot = forget_old(writer, snapshot, job.retain_days, now_ms())
        parts = snapshot.parts.get(EVENTS, {})
        hours = scattered_hours(writer.lake, parts, job.folders_max)
        if not hours:
            result.note = "No hour has many small files."
            return result
        progress.enter(Stage.START)
        with start_spark(False) as spark:
            progress.spark_is_at(spark.sparkContext.uiWebUrl)
            chunks = [
                hours[begin : begin + HOURS_PER_CHUNK]
                for begin in range(0, len(hours), HOURS_PER_CHUNK)
            ]
            for number, chunk in enumerate(chunks):
                progress.enter(Stage.COMPACT, part=number, parts=len(chunks))
                snapshot = _rewrite(spark, writer, snapshot, chunk, progress, result, now_ms())
    return result


def scattered_hours(lake: Lake, parts: Parts, folders_max: int) -> list[HourIndex]:
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


def forget_old(writer: LakeWriter, snapshot: Snapshot, retain_days: int, now_ms: int) -> Snapshot:
    """Let go of hours older than `retain_days`; their files go with the next sweep."""
    oldest = hour_of(now_ms) - retain_days * 24
    parts = not_before(snapshot.parts, oldest)
    if parts == snapshot.parts:
        return snapshot
    stale = {name: [hour for hour in old if hour >= oldest] for name, old in snapshot.stale.items()}
    snapshot = msgspec.structs.replace(
        snapshot, run=writer.next_run(), committed_ms=now_ms, parts=parts, stale=stale
    )
    writer.lake.commit(snapshot)
    return snapshot


def not_before(
    parts: Mapping[str, Mapping[HourIndex, list[int]]], oldest: HourIndex
) -> dict[str, dict[HourIndex, list[int]]]:
    """The parts without the hours before `oldest`."""
    return {
        name: {hour: runs for hour, runs in hours.items() if hour >= oldest}
        for name, hours in parts.items()
    }


def _rewrite(
    spark: "SparkSession",
    writer: LakeWriter,
    snapshot: Snapshot,
    hours: Collection[HourIndex],
    progress: Progress,
    result: Result,
    now_ms: int,
) -> Snapshot:
    from spark_jobs.lake_frames import read_events, write_hours
    from spark_jobs.watch import watching

    run = writer.next_run()
    parts = snapshot.parts[EVENTS]
    events = read_events(spark, writer.lake, parts, hours)
    written: Iterable[HourIndex] = ()
    if events is not None:
        with watching(spark, progress):
            written = write_hours(events, writer.lake, EVENTS, run, one_file=True)
        anew = read_events(spark, writer.lake, {hour: [run] for hour in written}, written)
        result.rows += anew.count() if anew is not None else 0
    snapshot = msgspec.structs.replace(
        snapshot,
        run=run,
        committed_ms=now_ms,
        parts={**snapshot.parts, EVENTS: replaced_parts(parts, run, written, redone=hours)},
    )
    writer.lake.commit(snapshot)
    result.hours += len(hours)
    return snapshot
