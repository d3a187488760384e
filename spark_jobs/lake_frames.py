"""Events and rollups between Spark and the folders of the lake."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.decode import EVENT_SCHEMA
from trace.lake import EVENTS, HourIndex, Lake, Parts


def read_events(
    spark: SparkSession, lake: Lake, parts: Parts, hours: Iterable[HourIndex]
) -> DataFrame | None:
    """The events of `hours`, from the runs that `parts` names; None when there are none."""
    folders = [str(path) for path in lake.folders(EVENTS, parts, hours)]
    return spark.read.schema(EVENT_SCHEMA).parquet(*folders) if folders else None


def write_hours(
    frame: DataFrame, lake: Lake, dataset: str, run: int, time_column: str
) -> list[HourIndex]:
    """Write `frame` as folders of hours by `time_column`; returns the hours that got any rows."""
    at = F.timestamp_millis(time_column)
    (
        frame.withColumn("day", F.date_format(at, "yyyy-MM-dd"))
        .withColumn("hour", F.date_format(at, "HH"))
        .withColumn("run", F.lit(run))
        .write.mode("append")
        .partitionBy("day", "hour", "run")
        .parquet(str(lake.dataset(dataset)))
    )
    return sorted(hour for hour, number, _ in lake.on_disk(dataset) if number == run)
