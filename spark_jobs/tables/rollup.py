"""The tables `minute` and `latency` from the facts: pure DataFrame functions.

In `minute`, rows without a consumer group count sends; rows with a group count attempts to consume.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trace.lake import HOUR_MS
from trace.latency import LOG_GAMMA
from trace.tables import LATENCY, LEVELS, MINUTE

MINUTE_MS: Final = 60_000

_KEYS: Final = ("minute_ms", "topic", "producer_group", "consumer_group", "msg_type")
_CONSUME_MEASURES: Final = ("latency", "end_to_end")
_COUNTS: Final = tuple(
    name for name in MINUTE.names[len(_KEYS) :] if not name.endswith(("_max", "_rate", *LEVELS))
)


def per_minute(sends: DataFrame, attempts: DataFrame) -> DataFrame:
    """The counters and exact percentiles of each minute, as `trace.tables.MINUTE`."""
    sent = (
        sends.select("*", _minute("sent_ms"))
        .groupBy(*_KEYS)
        .agg(
            F.sum("messages").alias("sends"),
            count(~F.col("success"), F.col("messages")).alias("send_failures"),
            count(F.col("success"), F.col("bytes")).alias("bytes"),
            *_spread("cost_ms", "send_cost"),
        )
        .transform(_split, ["send_cost"])
    )
    consumed = (
        attempts.select("*", _minute("start_ms"))
        .groupBy(*_KEYS)
        .agg(
            F.count("*").alias("attempts"),
            count(F.col("success")).alias("successes"),
            count(~F.col("success")).alias("failures"),
            count(F.col("success").isNull()).alias("unfinished"),
            count(F.col("retry_times") > 0).alias("retries"),
            count(F.col("is_dead_letter")).alias("dead_letters"),
            count(F.col("attempt_index") == 0).alias("deliveries"),
            count(F.col("is_first_success")).alias("consumed"),
            *(part for name in _CONSUME_MEASURES for part in _spread(f"{name}_ms", name)),
        )
        .transform(_split, _CONSUME_MEASURES)
        .withColumn(
            "success_rate", F.try_divide("successes", F.col("successes") + F.col("failures"))
        )
    )
    both = sent.unionByName(consumed, allowMissingColumns=True)
    return both.fillna(0, subset=list(_COUNTS)).select(*MINUTE.names)


def latency_histograms(sends: DataFrame, attempts: DataFrame) -> DataFrame:
    """Histogram counts of the measures of `per_minute`, as `trace.tables.LATENCY`."""
    costs = sends.select("*", _minute("sent_ms")).select(*_KEYS, *_bucket("send_cost", "cost_ms"))
    waits = attempts.select(_minute("start_ms"), "*")
    buckets = costs
    for measure in _CONSUME_MEASURES:
        measured = waits.where(F.col(f"{measure}_ms").isNotNull())
        buckets = buckets.union(measured.select(*_KEYS, *_bucket(measure, f"{measure}_ms")))
    counted = buckets.groupBy(*_KEYS, "measure", "bucket").count()
    return counted.select(*LATENCY.names)


def in_hours(frame: DataFrame, time_column: str, hours: Sequence[int]) -> DataFrame:
    """The rows with a time in `hours` (hours since 1970)."""
    return frame.where(F.floor(F.col(time_column) / HOUR_MS).isin(list(hours)))


def count(condition: Column, weight: Column | None = None) -> Column:
    """Number of rows that satisfy `condition`, or the sum of their weights; never null."""
    one = F.lit(1).cast("bigint") if weight is None else weight
    return F.coalesce(F.sum(F.when(condition, one)), F.lit(0))


def _minute(time_column: str) -> Column:
    return (F.col(time_column) - F.pmod(time_column, F.lit(MINUTE_MS))).alias("minute_ms")


def _spread(column: str, name: str) -> list[Column]:
    levels = F.array(*map(F.lit, LEVELS.values()))
    return [
        F.percentile(column, levels).alias(name),
        F.max(column).cast("double").alias(f"{name}_max"),
    ]


def _split(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The percentiles in columns of their own."""
    return frame.withColumns(
        {f"{name}_{p}": F.col(name)[at] for name in names for at, p in enumerate(LEVELS)}
    )


def _bucket(measure: str, column: str) -> tuple[Column, Column]:
    value = F.col(column)
    bucket = F.ceil(F.log(value) / LOG_GAMMA).cast("int")
    number = F.when(value > 1, bucket).otherwise(F.lit(0)).alias("bucket")
    return F.lit(measure).alias("measure"), number
