"""From trace events to facts: one row per message sent, one row per attempt to consume it.

Pure DataFrame functions with the rules of `trace.timeline`: a record repeated by its client's
retry counts once; an attempt is a SubBefore and a SubAfter of the same request; a message counts
as stored in the middle of its first successful send; the latency of a group is that of its first
attempt, and never negative, however wrong the clocks are.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

COST_MAX_MS: Final = 24 * 3600 * 1000
"""A longer cost is a broken clock; it counts as this much."""


def sends(events: DataFrame) -> DataFrame:
    """One row per Pub record: (sent_ms, topic, producer_group, msg_id, messages, bytes, cost_ms,
    success). `messages` is more than 1 for a batch, whose msg_id holds all ids joined by commas.
    """
    pubs = events.where(F.col("kind") == "Pub")
    return (
        pubs.select(
            F.col("event_ms").alias("sent_ms"),
            _known("topic"),
            _known("group_name").alias("producer_group"),
            "msg_id",
            F.size(F.split("msg_id", ",")).cast("bigint").alias("messages"),
            F.greatest(F.lit(0), "body_bytes").alias("bytes"),
            _cost().alias("cost_ms"),
            "success",
        )
        # The producer's trace message may be there twice; two attempts of one send differ in time.
        .dropDuplicates()
    )


def attempts(events: DataFrame) -> DataFrame:
    """One row per listener call and message: (msg_id, request_id, consumer_group, start_ms,
    retry_times, finished, success, duration_ms). What was not recorded is null.
    """
    before, after = F.col("kind") == "SubBefore", F.col("kind") == "SubAfter"
    paired = (
        events.where(before | after)
        .groupBy("msg_id", "request_id")
        .agg(
            F.min(F.when(before, F.col("event_ms"))).alias("begin_ms"),
            F.max(F.when(before, _known("group_name"))).alias("begin_group"),
            F.max(F.when(before, F.col("retry_times"))).alias("retry_times"),
            # Of two ends of one request the first counts.
            F.min(F.when(after, F.struct("stored_ms", "event_ms", *_end_columns()))).alias("end"),
        )
    )
    start = F.coalesce(F.col("begin_ms"), F.col("end.event_ms") - F.col("end.cost_ms"))
    elapsed = F.greatest(F.col("end.event_ms") - F.col("begin_ms"), F.col("end.cost_ms"))
    return paired.select(
        "msg_id",
        "request_id",
        F.coalesce("begin_group", "end.consumer_group").alias("consumer_group"),
        start.alias("start_ms"),
        "retry_times",
        F.col("end").isNotNull().alias("finished"),
        F.col("end.success").alias("success"),
        elapsed.alias("duration_ms"),
    )


def deliveries(events: DataFrame) -> DataFrame:
    """The attempts with what the producer's records say about their message: (topic,
    producer_group, stored_ms, latency_ms). `latency_ms` is null but for a group's first attempt.
    """
    known = attempts(events).join(_origins(sends(events)), "msg_id", "left")
    group = Window.partitionBy("msg_id", "consumer_group")
    # Consumers' clocks differ, so the retry count tells the order; who has none may be first.
    lowest_retry = F.min("retry_times").over(group)
    may_be_first = F.coalesce(F.col("retry_times") == lowest_retry, F.lit(True))
    place = F.row_number().over(group.orderBy(F.desc("may_be_first"), "start_ms", "request_id"))
    waited = F.col("start_ms") - F.col("stored_ms")
    return (
        known.withColumn("may_be_first", may_be_first)
        .withColumn("place", place)
        .select(
            "start_ms",
            "topic",
            "producer_group",
            "consumer_group",
            "msg_id",
            "retry_times",
            "finished",
            "success",
            "duration_ms",
            "stored_ms",
            F.when((F.col("place") == 1) & waited.isNotNull(), F.greatest(F.lit(0), waited)).alias(
                "latency_ms"
            ),
        )
    )


def _origins(sent: DataFrame) -> DataFrame:
    """For each message its topic, its producer and when it was stored."""
    each = sent.select(
        F.explode(F.split("msg_id", ",")).alias("msg_id"),
        "sent_ms",
        "topic",
        "producer_group",
        (F.col("sent_ms") + F.floor(F.col("cost_ms") / 2)).alias("middle_ms"),
        "success",
    )
    return each.groupBy("msg_id").agg(
        F.min_by("topic", "sent_ms").alias("topic"),
        F.min_by("producer_group", "sent_ms").alias("producer_group"),
        F.min(F.when(F.col("success"), F.struct("sent_ms", "middle_ms")))["middle_ms"].alias(
            "stored_ms"
        ),
    )


def _end_columns() -> list[Column]:
    return [
        _cost().alias("cost_ms"),
        F.col("success"),
        _known("group_name").alias("consumer_group"),
    ]


def _cost() -> Column:
    return F.least(F.greatest(F.lit(0), "cost_ms"), F.lit(COST_MAX_MS))


def _known(name: str) -> Column:
    """An empty text says that the writer of the record did not know."""
    return F.when(F.col(name) != "", F.col(name)).alias(name)
