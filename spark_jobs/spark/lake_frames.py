"""Read and write the folders of the lake as DataFrames."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trace.lake import EVENTS, HourIndex, Lake, Parts
from trace.tables import TABLES

ROWS_PER_FILE_MAX: Final = 5_000_000


def read_events(
    spark: SparkSession, lake: Lake, parts: Parts, hours: Iterable[HourIndex]
) -> DataFrame | None:
    """The events of `hours`, from the runs in `parts`; None when there are none."""
    folders = [str(path) for path in lake.folders(EVENTS, parts, hours)]
    return spark.read.schema(TABLES[EVENTS].schema).parquet(*folders) if folders else None


def write_hours(
    frame: DataFrame, lake: Lake, dataset: str, run: int, *, one_file: bool = False
) -> list[HourIndex]:
    """Write `frame` as folders of hours; returns the hours with rows.

    `one_file` writes one file per hour, after a shuffle; otherwise each task writes a file in every
    hour of its rows.
    """
    at = F.timestamp_millis(TABLES[dataset].time_column)
    placed = frame.withColumns(
        {"day": F.date_format(at, "yyyy-MM-dd"), "hour": F.date_format(at, "HH"), "run": F.lit(run)}
    )
    if one_file:
        placed = placed.repartition("day", "hour")
    (
        placed.write.mode("append")
        .option("maxRecordsPerFile", ROWS_PER_FILE_MAX)
        .partitionBy("day", "hour", "run")
        .parquet(str(lake.dataset(dataset)))
    )
    return sorted(hour for hour, number, _ in lake.on_disk(dataset) if number == run)
