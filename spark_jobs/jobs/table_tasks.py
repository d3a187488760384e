"""Derive and write all tables of a set of hours from facts, in two kinds of Spark tasks.

    reduce   reads a file of facts, and reduces the facts to partial tables
    add      adds the partial tables of an hour, and writes the tables to files

Between the tasks Spark moves whole Arrow tables, as one value each.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow
from pyarrow.parquet import ParquetFile

from spark_jobs.jobs.fact_files import FactFile, current_facts
from spark_jobs.spark.hour_files import HourFiles
from spark_jobs.spark.packed import Batches, rows_of, unpacked, values_of
from spark_jobs.spark.spool import Spool
from spark_jobs.spark.worker_tasks import map_batches
from spark_jobs.tables.derived import AWAITED, empty_partial_tables, partial_tables, tables_of
from trace.columns import arrow_schema
from trace.lake import HourIndex
from trace.tables import CONSUMERS, LOOKBACK_HOURS, TABLES

if TYPE_CHECKING:
    from pyarrow import Table
    from pyspark.sql import SparkSession

#: All tables that jobs derive from facts.
_TABLES: Final = {**TABLES, CONSUMERS.name: CONSUMERS}


@dataclass(frozen=True, slots=True)
class TableWork:
    """What to derive: the input of every task."""

    #: Hour: its tables to derive.
    datasets: dict[HourIndex, tuple[str, ...]]
    #: The facts of these hours.
    files: tuple[FactFile, ...]
    #: Hour of the look-back, or derived before: files of its consumers.
    consumers: dict[HourIndex, tuple[Path, ...]]
    staging: Path
    watermark_ms: int


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """The result of `write_tables`."""

    #: Dataset, hour and name of every file.
    files: list[tuple[str, HourIndex, str]]
    #: Hours with other consumers than before.
    changed: list[HourIndex]


def write_tables(spark: "SparkSession", work: TableWork) -> WrittenTables:
    """Write the tables to the staging folder."""
    count, tasks = max(1, len(work.files)), 4 * spark.sparkContext.defaultParallelism
    numbers = spark.range(0, count, 1, min(count, tasks))
    partial = map_batches(numbers, _reduce(work), "hour bigint, name string, partial binary")
    together = partial.repartition(min(len(work.datasets), tasks), "hour")
    written = map_batches(together, _add(work), "dataset string, hour bigint, name string")
    rows = [(row.dataset, row.hour, row.name) for row in written.collect()]
    return WrittenTables(
        [row for row in rows if row[0]], [hour for dataset, hour, _ in rows if not dataset]
    )


def _reduce(work: TableWork) -> "Callable[[Batches], Batches]":
    def reduce(batches: Batches) -> Batches:
        for (number,) in values_of(batches):
            # Without any facts, an empty row makes the task that writes nothing.
            for file in work.files[number : number + 1]:
                for facts in current_facts(file):
                    for name, table in partial_tables(facts).items():
                        hours = [file.hour]
                        if name == "consumers":
                            hours = _hours_after(file.hour, work)
                        # An hour without facts has counts, so that its tables become empty.
                        is_sent = len(table) or name == "counts"
                        found = [(hour, name, table) for hour in hours if is_sent]
                        yield rows_of(
                            found,
                            hour=pyarrow.int64(),
                            name=pyarrow.string(),
                            partial=pyarrow.binary(),
                        )

    return reduce


def _hours_after(hour: HourIndex, work: TableWork) -> list[HourIndex]:
    """The hours to derive with `hour` in their look-back."""
    return [each for each in work.datasets if 0 <= each - hour <= LOOKBACK_HOURS]


def _add(work: TableWork) -> "Callable[[Batches], Batches]":
    def add(batches: Batches) -> Batches:
        empty = empty_partial_tables()
        hours: dict[HourIndex, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        changed = []
        with ExitStack() as stack:
            awaited = stack.enter_context(Spool())
            for hour, name, packed in values_of(batches):
                if name == AWAITED:
                    awaited.add(hour, packed)
                else:
                    hours[hour][name].append(packed)
            files = {
                name: stack.enter_context(closing(HourFiles(work.staging, table)))
                for name, table in _TABLES.items()
            }
            while hours:
                hour, partial = hours.popitem()
                pieces = (unpacked([piece]) for piece in awaited.values(hour))
                tables = {name: unpacked(partial[name], table) for name, table in empty.items()}
                tables["consumers"] = _with_lookback(tables["consumers"], hour, work)
                found = tables_of(hour, tables, pieces, work.datasets[hour], work.watermark_ms)
                for name, table in found.items():
                    for rows in table.combine_chunks().to_batches():
                        files[name].add(rows)
                if CONSUMERS.name in found:
                    before = _consumers(work.consumers.get(hour, ()))
                    if _values(before) != _values(found[CONSUMERS.name]):
                        changed.append(hour)
        written: list[tuple[Any, ...]] = [
            (name, *each) for name, of in files.items() for each in of.finished
        ]
        written += [(None, hour, None) for hour in changed]
        yield rows_of(
            written, dataset=pyarrow.string(), hour=pyarrow.int64(), name=pyarrow.string()
        )

    return add


def _with_lookback(own: "Table", hour: HourIndex, work: TableWork) -> "Table":
    """`own` and the stored consumers of the look-back, without hours that are derived anew."""
    stored = [
        _consumers(work.consumers.get(each, ()))
        for each in range(hour - LOOKBACK_HOURS, hour)
        if each not in work.datasets
    ]
    return pyarrow.concat_tables([own, *stored])


def _consumers(files: Sequence[Path]) -> "Table":
    schema = arrow_schema(CONSUMERS)
    return pyarrow.concat_tables([schema.empty_table(), *(ParquetFile(it).read() for it in files)])


def _values(table: "Table") -> set[tuple[Any, ...]]:
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))
