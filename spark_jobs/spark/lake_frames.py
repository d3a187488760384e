"""Read and write the folders of the lake as DataFrames."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.spark.hour_files import HourFiles
from spark_jobs.spark.lake_writer import LakeWriter
from trace.columns import arrow_schema
from trace.lake import EVENTS, HOUR_MS, HourIndex, Lake, Parts
from trace.tables import TABLES, Table

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def read_events(
    spark: SparkSession, lake: Lake, parts: Parts, hours: Iterable[HourIndex]
) -> DataFrame | None:
    """The events of `hours`, from the runs in `parts`; None when there are none."""
    folders = [str(path) for path in lake.folders(EVENTS, parts, hours)]
    return spark.read.schema(TABLES[EVENTS].schema).parquet(*folders) if folders else None


def write_hours(frame: DataFrame, writer: LakeWriter, dataset: str, run: int) -> list[HourIndex]:
    """Write `frame` as one file per hour of `dataset`; returns the hours with rows."""
    table = TABLES[dataset]
    hour = F.floor(F.col(table.time_column) / HOUR_MS)
    rows = frame.select(*table.names).repartition(hour)
    written = rows.mapInArrow(_task(table, writer.lake.staging(run)), "hour bigint, name string")
    return writer.place(dataset, run, [(row.hour, row.name) for row in written.collect()])


def _task(
    table: Table, staging: Path
) -> "Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]":
    def write(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow

        with closing(HourFiles(staging, table)) as files:
            for batch in batches:
                files.add(batch.cast(arrow_schema(table)))
        hours, names = zip(*files.finished, strict=True) if files.finished else ((), ())
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(hours, pyarrow.int64()), pyarrow.array(names, pyarrow.string())],
            ["hour", "name"],
        )

    return write
