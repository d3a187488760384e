"""Rollups of one hour or many: pure DataFrame functions over the facts.

minute    one row per minute, topic, producer group and consumer group. A row without consumer
          group is about sends, a row with one about attempts to consume.
latency   histogram buckets (`trace.latency`) with the same keys: percentiles over any range
slow      the slowest deliveries of each hour, topic and consumer group
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trace.lake import HOUR_MS
from trace.latency import LOG_GAMMA

MINUTE_MS: Final = 60_000
SLOW_PER_HOUR_MAX: Final = 20
"""So many deliveries of one topic and group are kept of each hour."""

_KEYS: Final = ("minute_ms", "topic", "producer_group", "consumer_group")
_SEND_COUNTS: Final = ("sends", "send_failures", "bytes")
_CONSUME_COUNTS: Final = ("attempts", "successes", "failures", "retries")
_LEVELS: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def per_minute(sends: DataFrame, deliveries: DataFrame) -> DataFrame:
    """The counters and exact percentiles of each minute."""
    sent = (
        sends.select("*", _minute("sent_ms"), F.lit(None).cast("string").alias("consumer_group"))
        .groupBy(*_KEYS)
        .agg(
            F.sum("messages").alias("sends"),
            _count(~F.col("success"), F.col("messages")).alias("send_failures"),
            _count(F.col("success"), F.col("bytes")).alias("bytes"),
            *_spread("cost_ms", "send_cost"),
        )
    )
    consumed = (
        deliveries.select("*", _minute("start_ms"))
        .groupBy(*_KEYS)
        .agg(
            F.count("*").alias("attempts"),
            _count(F.col("success")).alias("successes"),
            _count(~F.col("success")).alias("failures"),
            _count(F.col("retry_times") > 0).alias("retries"),
            *_spread("latency_ms", "latency"),
        )
    )
    both = sent.unionByName(consumed, allowMissingColumns=True)
    return both.select(
        *_KEYS,
        *(F.coalesce(name, F.lit(0)).alias(name) for name in (*_SEND_COUNTS, *_CONSUME_COUNTS)),
        *_spread_names("send_cost"),
        *_spread_names("latency"),
    )


def latency_histograms(sends: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Counts per bucket of what `per_minute` gives percentiles of: (measure, bucket, count)."""
    no_group = F.lit(None).cast("string").alias("consumer_group")
    costs = sends.select(
        _minute("sent_ms"),
        "topic",
        "producer_group",
        no_group,
        F.lit("send_cost").alias("measure"),
        _bucket("cost_ms"),
    )
    waits = deliveries.where(F.col("latency_ms").isNotNull()).select(
        _minute("start_ms"),
        "topic",
        "producer_group",
        "consumer_group",
        F.lit("latency").alias("measure"),
        _bucket("latency_ms"),
    )
    return costs.union(waits).groupBy(*_KEYS, "measure", "bucket").count()


def slowest(deliveries: DataFrame) -> DataFrame:
    """The deliveries that waited longest between store and listener."""
    by_latency = Window.partitionBy(
        F.floor(F.col("start_ms") / HOUR_MS), "topic", "consumer_group"
    ).orderBy(F.desc("latency_ms"), "msg_id")
    ranked = deliveries.where(F.col("latency_ms").isNotNull()).select(
        "start_ms",
        "topic",
        "producer_group",
        "consumer_group",
        "msg_id",
        "stored_ms",
        "latency_ms",
        "duration_ms",
        "success",
        F.row_number().over(by_latency).alias("place"),
    )
    return ranked.where(F.col("place") <= SLOW_PER_HOUR_MAX).drop("place")


def in_hours(frame: DataFrame, time_column: str, hours: Sequence[int]) -> DataFrame:
    """The rows that happened in one of `hours` (hours since 1970)."""
    return frame.where(F.floor(F.col(time_column) / HOUR_MS).isin(list(hours)))


def _minute(time_column: str) -> Column:
    return (F.col(time_column) - F.pmod(time_column, F.lit(MINUTE_MS))).alias("minute_ms")


def _count(condition: Column, weight: Column | None = None) -> Column:
    one = F.lit(1).cast("bigint") if weight is None else weight
    return F.coalesce(F.sum(F.when(condition, one)), F.lit(0))


def _spread(column: str, name: str) -> list[Column]:
    percentiles = [F.percentile(column, level).alias(f"{name}_{p}") for p, level in _LEVELS.items()]
    return [*percentiles, F.max(column).cast("double").alias(f"{name}_max")]


def _spread_names(name: str) -> list[str]:
    return [f"{name}_{suffix}" for suffix in (*_LEVELS, "max")]


def _bucket(column: str) -> Column:
    value = F.col(column)
    bucket = F.ceil(F.log(value) / LOG_GAMMA).cast("int")
    return F.when(value > 1, bucket).otherwise(F.lit(0)).alias("bucket")
