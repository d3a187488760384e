"""The compact job: merge the files of an hour, and drop expired hours.

The job rewrites the events of an hour with more than FOLDERS_MAX runs, or with small files, as
files of up to `hour_files.FILE_BYTES`, with rows of one topic close together. Runs of `ingest`
merge small runs only (`spark_jobs.jobs.merge`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.jobs.merge import merge_runs
from spark_jobs.jobs.retention import drop_expired_hours
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.spark.hour_files import FILE_BYTES
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.message_index import index_of
from spark_jobs.spark.progress import Stage
from trace.lake import EVENTS, HourIndex, Lake, Snapshot

#: Default maximum of runs in an hour of events.
FOLDERS_MAX: Final = 4
#: Maximum of files in an hour of events, in addition to the files of full size.
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
        chosen = fragmented_hours(writer.lake, snapshot, job.folders_max)
        if not chosen:
            result.note = "No hour has many small files."
            return result
        hours = sorted(chosen)
        with runtime.start(job, writer, result, is_short=False) as run:
            for begin in range(0, len(hours), HOURS_PER_CHUNK):
                run.progress.enter(Stage.COMPACT, part=begin, parts=len(hours))
                some = {hour: chosen[hour] for hour in hours[begin : begin + HOURS_PER_CHUNK]}
                snapshot, rows = merge_runs(run, snapshot, EVENTS, some)
                result.rows += rows
                result.hours += len(some)
    return result


def fragmented_hours(
    lake: Lake, snapshot: Snapshot, folders_max: int
) -> dict[HourIndex, list[int]]:
    """The runs to merge, by hour: of hours with too many runs or files, or files without index.

    Runs without facts stay as they are.
    """
    chosen = {}
    for hour, all_runs in snapshot.parts.get(EVENTS, {}).items():
        runs = [run for run in all_runs if run not in snapshot.pending]
        files = lake.files(EVENTS, {hour: runs}, [hour])
        full_files = sum(file.stat().st_size for file in files) // FILE_BYTES
        has_indexes = all(index_of(file).exists() for file in files)
        if len(runs) > folders_max or len(files) > FILES_MAX + full_files or not has_indexes:
            chosen[hour] = runs
    return chosen
