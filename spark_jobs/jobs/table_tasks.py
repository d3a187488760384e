"""Derive and write all tables of a set of hours, in three kinds of Spark tasks.

    split    reads event files, and splits the events into parts by message id
    derive   derives the facts of a part, and reduces the facts to partial tables, by hour
    add      adds the partial tables of an hour, and writes the tables to files

Between the tasks Spark moves whole Arrow tables, as one value each.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow
import pyarrow.ipc
from pyarrow.parquet import ParquetFile

from spark_jobs.spark.hour_files import HourFiles
from spark_jobs.tables.derived import by_hour, partial_tables, tables_of
from spark_jobs.tables.facts import FILE_COLUMNS, by_message, facts_in, no_events
from trace.lake import HourIndex
from trace.tables import TABLES

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch, Table
    from pyspark.sql import SparkSession

#: Rows of events read at once.
ROWS_READ: Final = 131_072
#: Size of the event files per part, bytes: 70,000 to 200,000 events, which one task holds.
EVENT_BYTES_PER_PART: Final = 2 * 1024 * 1024

_Batches = Iterator["RecordBatch"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """What to derive: the input of every task."""

    hours: tuple[HourIndex, ...]
    datasets: tuple[str, ...]
    #: Files with the events of `facts.hours_around(hours)`.
    files: tuple[Path, ...]
    staging: Path
    watermark_ms: int
    retry_times_max: Mapping[str, int]


def write_tables(spark: "SparkSession", work: Derivation) -> list[tuple[str, HourIndex, str]]:
    """Write the tables to the staging folder; returns dataset, hour and name of every file."""
    tasks = spark.sparkContext.defaultParallelism
    parts = max(tasks, 1 + sum(file.stat().st_size for file in work.files) // EVENT_BYTES_PER_PART)
    shares = [work.files[place :: 2 * tasks] for place in range(2 * tasks)]
    split = spark.range(0, len(shares), 1, len(shares)).mapInArrow(
        _split(shares, parts), "part int, events binary"
    )
    derived = split.repartition(parts, "part").mapInArrow(
        _derive(work), "hour bigint, name string, partial binary"
    )
    written = derived.repartition(len(work.hours), "hour").mapInArrow(
        _add(work), "dataset string, hour bigint, name string"
    )
    return [(row.dataset, row.hour, row.name) for row in written.collect()]


def _split(shares: Sequence[Sequence[Path]], parts: int) -> "Callable[[_Batches], _Batches]":
    def split(batches: _Batches) -> _Batches:
        for batch in batches:
            for share in batch.column("id").to_pylist():
                for path in shares[share]:
                    with ParquetFile(path) as file:
                        for rows in file.iter_batches(ROWS_READ, columns=FILE_COLUMNS):
                            found = by_message(pyarrow.Table.from_batches([rows]), parts)
                            yield _rows(found, part=pyarrow.int32(), events=pyarrow.binary())

    return split


def _derive(work: Derivation) -> "Callable[[_Batches], _Batches]":
    def derive(batches: _Batches) -> _Batches:
        parts: dict[int, list[bytes]] = defaultdict(list)
        for batch in batches:
            for part, events in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                parts[part].append(events)
        merged: dict[tuple[HourIndex, str], list[Table]] = defaultdict(list)
        while parts:
            _, packed = parts.popitem()
            with _no_collections():
                facts = facts_in(_unpacked(packed), work.hours, work.retry_times_max)
            for name, table in partial_tables(facts).items():
                for hour, rows in by_hour(name, table, work.hours):
                    if len(rows):
                        merged[hour, name].append(rows)
        for (hour, name), tables in merged.items():
            found = [(hour, name, pyarrow.concat_tables(tables))]
            yield _rows(
                found, hour=pyarrow.int64(), name=pyarrow.string(), partial=pyarrow.binary()
            )

    return derive


def _add(work: Derivation) -> "Callable[[_Batches], _Batches]":
    def add(batches: _Batches) -> _Batches:
        empty = partial_tables(facts_in(no_events(), (), {}))
        partial: dict[HourIndex, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        for batch in batches:
            for hour, name, packed in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                partial[hour][name].append(packed)
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(closing(HourFiles(work.staging, TABLES[name])))
                for name in work.datasets
            }
            while partial:
                _, packed_tables = partial.popitem()
                tables = {name: _unpacked(packed_tables[name], empty[name]) for name in empty}
                for name, table in tables_of(tables, work.datasets, work.watermark_ms).items():
                    for rows in table.combine_chunks().to_batches():
                        files[name].add(rows)
        found = [(name, *each) for name, written in files.items() for each in written.finished]
        yield _rows(found, dataset=pyarrow.string(), hour=pyarrow.int64(), name=pyarrow.string())

    return add


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


def _rows(values: "Iterable[tuple[Any, ...]]", **types: "DataType") -> "RecordBatch":
    """Rows of a batch; a table becomes a binary value."""
    columns: list[list[Any]] = [[] for _ in types]
    for row in values:
        for column, value in zip(columns, row, strict=True):
            column.append(_packed(value) if isinstance(value, pyarrow.Table) else value)
    arrays = [pyarrow.array(*each) for each in zip(columns, types.values(), strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, list(types))


def _packed(table: "Table") -> bytes:
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    with pyarrow.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def _unpacked(packed: Sequence[bytes], empty: "Table | None" = None) -> "Table":
    tables = [pyarrow.ipc.open_stream(each).read_all() for each in packed]
    return pyarrow.concat_tables(tables if empty is None else [empty, *tables])
