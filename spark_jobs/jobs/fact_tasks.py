"""Derive and write facts from events, in two kinds of Spark tasks.

    split    reads event files, and splits the events into parts by message id
    derive   derives the facts of a part, and writes the facts to files

Of new events, the tasks also read the older events of the same messages: the indexes of the files
name the row groups. Between the tasks Spark moves whole Arrow tables, as one value each.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy
import pyarrow
from pyarrow.parquet import ParquetFile

from spark_jobs.spark.hour_files import HourFiles, StagedFile
from spark_jobs.spark.message_index import hashes_in, is_among, row_groups_with
from spark_jobs.spark.packed import Batches, rows_of, unpacked, values_of
from spark_jobs.spark.worker_tasks import map_batches
from spark_jobs.tables.facts import FILE_COLUMNS, by_message, changed_facts, facts_in
from trace.lake import HourIndex
from trace.tables import FACTS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import Table
    from pyspark.sql import SparkSession

#: Size of the event files per part, bytes: 70,000 to 200,000 events, which one task holds.
EVENT_BYTES_PER_PART: Final = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Derivation:
    """What to derive: the input of every task."""

    #: Files with new events.
    files: tuple[Path, ...]
    #: Files that may have earlier events of the same messages.
    older: tuple[Path, ...]
    #: Hours of the facts; None means every hour with changed facts.
    hours: tuple[HourIndex, ...] | None
    staging: Path
    retry_times_max: Mapping[str, int]


def write_facts(spark: "SparkSession", work: Derivation) -> list[StagedFile]:
    """Write the facts to the staging folder; returns hour and name of every file."""
    tasks = spark.sparkContext.defaultParallelism
    bytes_new = sum(file.stat().st_size for file in work.files)
    parts = max(tasks, 1 + bytes_new // EVENT_BYTES_PER_PART)
    files = [*((file, True) for file in work.files), *((file, False) for file in work.older)]
    shares = [files[place :: 2 * tasks] for place in range(min(2 * tasks, len(files)))]
    numbers = spark.range(0, len(shares), 1, len(shares))
    split = map_batches(numbers, _split(work, shares, parts), "part int, events binary")
    together = split.repartition(parts, "part")
    written = map_batches(together, _derive(work), "hour bigint, name string")
    return [(row.hour, row.name) for row in written.collect()]


def _split(
    work: Derivation, shares: Sequence[Sequence[tuple[Path, bool]]], parts: int
) -> "Callable[[Batches], Batches]":
    def split(batches: Batches) -> Batches:
        touched: NDArray[Any] | None = None
        for (share,) in values_of(batches):
            for path, is_new in shares[share]:
                if not is_new and touched is None:
                    touched = numpy.unique(numpy.concatenate([*map(hashes_in, work.files)]))
                only = None if is_new else touched
                wanted = None if only is None else partial(is_among, wanted=only)
                for events in _events(path, only):
                    found = by_message(events, parts, is_new=is_new, wanted=wanted)
                    yield rows_of(found, part=pyarrow.int32(), events=pyarrow.binary())

    return split


def _events(path: Path, only: "NDArray[Any] | None") -> "Iterator[Table]":
    """The row groups of a file; with `only`, the row groups with some of these messages."""
    wanted = None if only is None else row_groups_with(path, only)
    if wanted == []:
        return
    with ParquetFile(path) as file:
        for group in range(file.num_row_groups) if wanted is None else wanted:
            yield file.read_row_group(group, columns=FILE_COLUMNS)


def _derive(work: Derivation) -> "Callable[[Batches], Batches]":
    def derive(batches: Batches) -> Batches:
        parts: dict[int, list[bytes]] = defaultdict(list)
        for part, events in values_of(batches):
            parts[part].append(events)
        with closing(HourFiles(work.staging, FACTS)) as files:
            while parts:
                events = unpacked(parts.popitem()[1])
                with _no_collections():
                    if work.hours is None:
                        facts = changed_facts(events, work.retry_times_max)
                    else:
                        facts = facts_in(events, work.hours, work.retry_times_max)
                for rows in facts.combine_chunks().to_batches():
                    files.add(rows)
        yield rows_of(files.finished, hour=pyarrow.int64(), name=pyarrow.string())

    return derive


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable the cyclic garbage collector: facts hold no cycles, and its scans of all facts take
    as long as the derivation.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
