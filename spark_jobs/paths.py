"""The tables `edges` and `slow`: who sends to whom, and what took long or never arrived.

A message never arrived at a group when the group is known to consume its topic, the message was
stored NEVER_CONSUMED_AFTER_MS before the last thing we heard, and no attempt of the group on it was
told of. Delayed messages are left out, for nobody recorded when they are due; so are recalled ones
and transactions that were not committed.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.facts import LOOKBACK_HOURS
from spark_jobs.rollup import count
from trace.codec import MessageType
from trace.lake import HOUR_MS, HourIndex
from trace.tables import EDGES, NEVER_CONSUMED_REASON, SLOW, SLOW_REASON

#: So many messages of one topic, group and reason are listed of each hour; all are counted.
LISTED_PER_HOUR_MAX: Final = 20
#: So long may a message wait before its absence means something.
NEVER_CONSUMED_AFTER_MS: Final = 10 * 60_000


def never_consumed(
    events: DataFrame,
    origins: DataFrame,
    deliveries: DataFrame,
    hours: Sequence[HourIndex],
    told_until_ms: int,
) -> DataFrame:
    """One row per message stored in `hours` and group that never had it: (stored_ms, sent_ms,
    topic, producer_group, consumer_group, msg_type, msg_id).

    `deliveries` must reach LOOKBACK_HOURS before `hours` and up to what was last told.
    """
    due = origins.where(F.col("stored_ms") <= told_until_ms - NEVER_CONSUMED_AFTER_MS).where(
        _hour_index("stored_ms").isin(list(hours))
    )
    waiting = due.where(F.coalesce(F.col("msg_type"), F.lit(0)) != MessageType.DELAY).join(
        _withdrawn(events, due), "msg_id", "left_anti"
    )
    expected = waiting.withColumn("hour", _hour_index("stored_ms")).join(
        F.broadcast(_listeners(deliveries, hours)), ["hour", "topic"]
    )
    expected = expected.where(F.col("known_ms") <= F.col("stored_ms") + NEVER_CONSUMED_AFTER_MS)
    had = deliveries.select("msg_id", "consumer_group")
    return expected.join(had, ["msg_id", "consumer_group"], "left_anti").select(
        "stored_ms",
        "sent_ms",
        "topic",
        "producer_group",
        "consumer_group",
        "msg_type",
        "msg_id",
    )


def edges(sends: DataFrame, deliveries: DataFrame, missed: DataFrame) -> DataFrame:
    """Who sent to whom in each hour, as `trace.tables.EDGES`."""
    keys = ("hour_ms", "producer_group", "topic", "consumer_group")
    no_group = F.lit(None).cast("string").alias("consumer_group")
    zero = F.lit(0).cast("bigint")
    sent = (
        sends.select("*", _hour_ms("sent_ms"), no_group)
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
    had = deliveries.select(
        _hour_ms("start_ms"),
        *keys[1:],
        (F.col("place") == 0).alias("is_first"),
        F.coalesce(~F.col("success"), F.lit(False)).alias("is_failure"),
        "is_dead_letter",
        F.lit(False).alias("is_missed"),
        F.col("start_ms").alias("at_ms"),
    )
    not_had = missed.select(
        _hour_ms("stored_ms"),
        *keys[1:],
        *(F.lit(False).alias(name) for name in ("is_first", "is_failure", "is_dead_letter")),
        F.lit(True).alias("is_missed"),
        F.col("stored_ms").alias("at_ms"),
    )
    consumed = (
        had.union(not_had)
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


def slow(deliveries: DataFrame, missed: DataFrame) -> DataFrame:
    """Of each hour, topic and group the messages that waited longest, and the first of those that
    never arrived, as `trace.tables.SLOW`."""
    took = F.max("end_to_end_ms").over(Window.partitionBy("msg_id", "consumer_group"))
    waited = (
        deliveries.where(F.col("stored_ms").isNotNull())
        .withColumn("end_to_end_ms", took)
        .where(F.col("latency_ms").isNotNull())
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


def _withdrawn(events: DataFrame, due: DataFrame) -> DataFrame:
    """Ids of messages that nobody is to get: recalled, or half messages without a commit."""
    kind, state = F.col("kind"), F.col("transaction_state")
    recalled = events.where((kind == "Recall") & F.col("success")).select("msg_id")
    committed = events.where((kind == "EndTransaction") & (state == "COMMIT_MESSAGE"))
    half = due.where(F.col("msg_type") == MessageType.TRANSACTION_HALF).select("msg_id")
    return recalled.union(half.join(committed.select("msg_id"), "msg_id", "left_anti"))


def _listeners(deliveries: DataFrame, hours: Sequence[HourIndex]) -> DataFrame:
    """Who consumes what, for each of `hours`: (hour, topic, consumer_group, known_ms)."""
    seen = (
        deliveries.where(F.col("topic").isNotNull() & F.col("consumer_group").isNotNull())
        .groupBy("topic", "consumer_group", _hour_index("start_ms").alias("seen_hour"))
        .agg(F.min("start_ms").alias("first_ms"))
    )
    wanted = F.array(*(F.lit(hour).cast("bigint") for hour in hours))
    reaches = F.filter(wanted, lambda hour: F.col("seen_hour").between(hour - LOOKBACK_HOURS, hour))
    return (
        seen.select("*", F.explode(reaches).alias("hour"))
        .groupBy("hour", "topic", "consumer_group")
        .agg(F.min("first_ms").alias("known_ms"))
    )


def _hour_index(time_column: str) -> Column:
    return F.floor(F.col(time_column) / HOUR_MS)


def _hour_ms(time_column: str) -> Column:
    return (F.col(time_column) - F.pmod(time_column, F.lit(HOUR_MS))).alias("hour_ms")
