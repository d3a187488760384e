"""The tables `edges` and `slow`: message flow between groups and topics, slow and lost messages.

A message counts as never consumed by a group when the group is known to consume the topic, the
message was stored at least NEVER_CONSUMED_AFTER_MS before the watermark, and the group has no
recorded attempt on the message. Delayed messages are excluded, because no record holds their due
time; recalled messages and uncommitted transactions are excluded, too.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.tables.rollup import count
from trace.facts import LOOKBACK_HOURS
from trace.lake import HOUR_MS, HourIndex
from trace.tables import EDGES, NEVER_CONSUMED_REASON, SLOW, SLOW_REASON

#: Maximum messages listed per hour, topic, group and reason; counts include all messages.
LISTED_PER_HOUR_MAX: Final = 20
#: Minimum age of a never-consumed message, ms.
NEVER_CONSUMED_AFTER_MS: Final = 10 * 60_000


def never_consumed(
    awaited: DataFrame, consumers: DataFrame, hours: Sequence[HourIndex], watermark_ms: int
) -> DataFrame:
    """One row per message stored in `hours` and group without an attempt: (stored_ms, sent_ms,
    topic, producer_group, consumer_group, msg_type, msg_id).

    `consumers` must cover LOOKBACK_HOURS before `hours` up to the watermark.
    """
    due = (
        awaited.where(F.col("stored_ms") <= watermark_ms - NEVER_CONSUMED_AFTER_MS)
        .withColumn("hour", _hour_index("stored_ms"))
        .where(F.col("hour").isin(list(hours)))
        .drop("consumer_group")
    )
    expected = due.join(F.broadcast(_consuming_groups(consumers, hours)), ["hour", "topic"])
    return expected.where(
        (F.col("first_ms_of_group") <= F.col("stored_ms") + NEVER_CONSUMED_AFTER_MS)
        & ~F.array_contains("awaited_groups", F.col("consumer_group"))
    ).select(
        "stored_ms",
        "sent_ms",
        "topic",
        "producer_group",
        "consumer_group",
        "msg_type",
        "msg_id",
    )


def edges(sends: DataFrame, attempts: DataFrame, missed: DataFrame) -> DataFrame:
    """Message counts per hour between groups and topics, as `trace.tables.EDGES`."""
    keys = ("hour_ms", "producer_group", "topic", "consumer_group")
    zero = F.lit(0).cast("bigint")
    sent = (
        sends.select("*", _hour_ms("sent_ms"))
        .groupBy(*keys)
        .agg(
            count(F.col("success"), F.col("messages")).alias("messages"),
            count(F.col("success"), F.col("bytes")).alias("bytes"),
            F.sum("messages").alias("attempts"),
            count(~F.col("success"), F.col("messages")).alias("failures"),
            zero.alias("dead_letters"),
            zero.alias("never_consumed"),
            F.min("sent_ms").alias("first_ms"),
            F.max("sent_ms").alias("last_ms"),
        )
    )
    consumed_by = attempts.select(
        _hour_ms("start_ms"),
        *keys[1:],
        (F.col("attempt_index") == 0).alias("is_first"),
        F.coalesce(~F.col("success"), F.lit(False)).alias("is_failure"),
        "is_dead_letter",
        F.lit(False).alias("is_missed"),
        F.col("start_ms").alias("at_ms"),
    )
    missing = missed.select(
        _hour_ms("stored_ms"),
        *keys[1:],
        *(F.lit(False).alias(name) for name in ("is_first", "is_failure", "is_dead_letter")),
        F.lit(True).alias("is_missed"),
        F.col("stored_ms").alias("at_ms"),
    )
    consumed = (
        consumed_by.union(missing)
        .groupBy(*keys)
        .agg(
            count(F.col("is_first")).alias("messages"),
            zero.alias("bytes"),
            count(~F.col("is_missed")).alias("attempts"),
            count(F.col("is_failure")).alias("failures"),
            count(F.col("is_dead_letter")).alias("dead_letters"),
            count(F.col("is_missed")).alias("never_consumed"),
            F.min("at_ms").alias("first_ms"),
            F.max("at_ms").alias("last_ms"),
        )
    )
    return sent.unionByName(consumed).select(*EDGES.names)


def slow(attempts: DataFrame, missed: DataFrame) -> DataFrame:
    """The slowest and the first never-consumed messages, as `trace.tables.SLOW`.

    Lists are per hour, topic, group and reason, with at most LISTED_PER_HOUR_MAX messages.
    """
    waited = (
        attempts.where(F.col("latency_ms").isNotNull())
        .drop("end_to_end_ms")
        .withColumnRenamed("group_end_to_end_ms", "end_to_end_ms")
        .select("*", F.col("start_ms").alias("at_ms"), F.lit(SLOW_REASON).alias("reason"))
    )
    waited = _listed(waited, F.desc("latency_ms"))
    absent = missed.select(
        "*",
        F.col("stored_ms").alias("at_ms"),
        F.lit(NEVER_CONSUMED_REASON).alias("reason"),
        F.lit(0).cast("bigint").alias("attempts"),
    )
    absent = _listed(absent, F.asc("at_ms"))
    both = waited.unionByName(absent, allowMissingColumns=True)
    return both.select(*SLOW.names)


def _listed(frame: DataFrame, order: Column) -> DataFrame:
    by_hour = Window.partitionBy(_hour_index("at_ms"), "topic", "consumer_group")
    ranked = frame.withColumn("rank", F.row_number().over(by_hour.orderBy(order, "msg_id")))
    return ranked.where(F.col("rank") <= LISTED_PER_HOUR_MAX).drop("rank")


def _consuming_groups(consumers: DataFrame, hours: Sequence[HourIndex]) -> DataFrame:
    """The consumer groups of each topic, for each of `hours`: (hour, topic, consumer_group,
    first_ms_of_group).
    """
    seen = consumers.groupBy(
        "topic", "consumer_group", _hour_index("start_ms").alias("seen_hour")
    ).agg(F.min("start_ms").alias("first_ms"))
    hour_array = F.array(*(F.lit(hour).cast("bigint") for hour in hours))
    known_hours = F.filter(
        hour_array, lambda hour: F.col("seen_hour").between(hour - LOOKBACK_HOURS, hour)
    )
    return (
        seen.select("*", F.explode(known_hours).alias("hour"))
        .groupBy("hour", "topic", "consumer_group")
        .agg(F.min("first_ms").alias("first_ms_of_group"))
    )


def _hour_index(time_column: str) -> Column:
    return F.floor(F.col(time_column) / HOUR_MS)


def _hour_ms(time_column: str) -> Column:
    return (F.col(time_column) - F.pmod(time_column, F.lit(HOUR_MS))).alias("hour_ms")
