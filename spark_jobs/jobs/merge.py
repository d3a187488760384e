"""Merge the files of several runs in an hour into files of one run.

Many small runs cost reads, and entries of the snapshot. A run of a job merges the newest runs of an
hour when an hour has more than RUNS_MAX runs: a run that is larger than twice the newer runs
together stays, so every row is rewritten a few times only. The old files stay until the next
deletion, for open readers.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from spark_jobs.jobs.fact_files import FactFile, current_facts, fact_files
from spark_jobs.jobs.run import Run
from spark_jobs.spark.hour_files import ROWS_PER_GROUP, HourFiles, StagedFile
from spark_jobs.spark.packed import Batches, rows_of, values_of
from spark_jobs.spark.task_monitor import monitor_tasks
from spark_jobs.spark.worker_tasks import map_batches
from spark_jobs.tables.facts import NONE, message_hashes
from trace import tables
from trace.lake import EVENTS, FACTS, HourIndex, Lake, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Maximum runs of events or facts in an hour after a run of a job.
RUNS_MAX: Final = 12
#: A run larger than the newer runs together, times this number, is not merged with these.
LARGER: Final = 2


@dataclass(frozen=True, slots=True)
class Merge:
    """The files of an hour to merge: of events, or of facts."""

    events: tuple[Path, ...] = ()
    facts: tuple[FactFile, ...] = ()
    #: Whether these are all facts of the hour: rows of the kind `none` replace nothing any more.
    is_whole: bool = False


def merge_small_runs(run: Run[Any], snapshot: Snapshot) -> Snapshot:
    """Merge the newest runs of hours with more than RUNS_MAX runs; returns the last commit."""
    for dataset in (EVENTS, FACTS):
        chosen = {
            hour: runs[-count:]
            for hour, runs in snapshot.parts.get(dataset, {}).items()
            if len(runs) > RUNS_MAX and not {*runs} & {*snapshot.pending}
            for count in [newest_to_merge(_sizes(run.writer.lake, dataset, hour, runs))]
        }
        if chosen:
            snapshot, _ = merge_runs(run, snapshot, dataset, chosen)
    return snapshot


def newest_to_merge(sizes: Sequence[int], runs_max: int = RUNS_MAX) -> int:
    """How many of the newest runs to merge; `sizes` are the bytes of more than `runs_max` runs."""
    count, total = 1, sizes[-1]
    for size in reversed(sizes[:-1]):
        if size > LARGER * total and len(sizes) - count < runs_max:
            break
        count, total = count + 1, total + size
    return count


def merge_runs(
    run: Run[Any], snapshot: Snapshot, dataset: str, chosen: Mapping[HourIndex, Sequence[int]]
) -> tuple[Snapshot, int]:
    """Merge the chosen runs, of facts the newest runs; returns the commit and the rows."""
    lake, number = run.writer.lake, run.writer.next_run()
    parts = snapshot.parts[dataset]
    merges = []
    for hour, runs in chosen.items():
        is_whole = len(runs) == len(parts[hour])
        if dataset == FACTS:
            facts = tuple(fact_files(lake, {hour: list(runs)}, hour))
            merges.append(Merge(facts=facts, is_whole=is_whole))
        else:
            merges.append(Merge(events=tuple(lake.files(EVENTS, {hour: list(runs)}, [hour]))))
    with monitor_tasks(run.session, run.progress):
        files = _write(run.session, merges, lake.staging(number))
    rows = sum(ParquetFile(lake.staging(number) / name).metadata.num_rows for _, name in files)
    placed = {*run.writer.place(dataset, number, files)}
    merged = {
        hour: [
            *(each for each in runs if each not in chosen.get(hour, ())),
            *([number] if hour in placed else []),
        ]
        for hour, runs in parts.items()
    }
    snapshot = msgspec.structs.replace(
        snapshot,
        run=number,
        committed_ms=run.now_ms(),
        parts={**snapshot.parts, dataset: merged},
    )
    lake.commit(snapshot)
    return snapshot, rows


def _sizes(lake: Lake, dataset: str, hour: HourIndex, runs: Sequence[int]) -> list[int]:
    return [
        sum(file.stat().st_size for file in lake.files(dataset, {hour: [run]}, [hour]))
        for run in runs
    ]


def _write(spark: "SparkSession", merges: Sequence[Merge], staging: Path) -> list[StagedFile]:
    tasks = spark.range(0, len(merges), 1, len(merges))
    written = map_batches(tasks, _task(merges, staging), "hour bigint, name string")
    return [(row.hour, row.name) for row in written.collect()]


def _task(merges: Sequence[Merge], staging: Path) -> "Callable[[Batches], Batches]":
    def merge(batches: Batches) -> Batches:
        with ExitStack() as stack:
            of_events = HourFiles(staging, tables.EVENTS, sort_by="topic", hashes=message_hashes)
            of_facts = HourFiles(staging, tables.FACTS)
            for files in (of_events, of_facts):
                stack.enter_context(closing(files))
            for (number,) in values_of(batches):
                work = merges[number]
                for path in work.events:
                    with ParquetFile(path) as file:
                        for batch in file.iter_batches(ROWS_PER_GROUP):
                            of_events.add(batch)
                for fact_file in work.facts:
                    for facts in current_facts(fact_file):
                        is_kept = pc.not_equal(facts.column("fact"), NONE)
                        rows = facts.filter(is_kept) if work.is_whole else facts
                        for batch in rows.combine_chunks().to_batches():
                            of_facts.add(batch)
        found = [*of_events.finished, *of_facts.finished]
        yield rows_of(found, hour=pyarrow.int64(), name=pyarrow.string())

    return merge
