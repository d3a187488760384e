"""Tables between Spark and the folders of the lake."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.facts import LOOKBACK_HOURS
from trace.lake import EVENTS, HourIndex, Lake, Parts
from trace.tables import TABLES

#: So much later may be told that a message was consumed after all.
LOOKAHEAD_HOURS: Final = 24
ROWS_PER_FILE_MAX: Final = 5_000_000


def read_events(
    spark: SparkSession, lake: Lake, parts: Parts, hours: Iterable[HourIndex]
) -> DataFrame | None:
    """The events of `hours`, from the runs that `parts` names; None when there are none."""
    folders = [str(path) for path in lake.folders(EVENTS, parts, hours)]
    return spark.read.schema(TABLES[EVENTS].schema).parquet(*folders) if folders else None


def write_hours(
    frame: DataFrame, lake: Lake, dataset: str, run: int, *, one_file: bool = False
) -> list[HourIndex]:
    """Write `frame` as folders of hours; returns the hours that got any rows.

    With `one_file` the rows of an hour are brought together first; a plain write leaves a file of
    each task in every hour it has rows of.
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


def around(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours whose events may say something about what happened in `hours`."""
    return {
        hour + distance
        for hour in hours
        for distance in range(-LOOKBACK_HOURS, LOOKAHEAD_HOURS + 1)
    }
