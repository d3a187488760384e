"""From trace events to facts: one row per message sent, one row per attempt to consume it.

Pure DataFrame functions with the rules of `trace.timeline`: a record repeated by its client's
retry counts once; an attempt is a SubBefore and a SubAfter of the same request; a message counts
as stored in the middle of its first successful send; nothing starts before its cause, however
wrong the clocks are.

Everything about one message is brought together by its id, once; what follows needs no exchange.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trace.lake import HOUR_MS
from trace.timeline import RETRY_TIMES_MAX_DEFAULT

#: A longer cost is a broken clock; it counts as this much.
COST_MAX_MS: Final = 24 * 3600 * 1000
#: So much earlier may a message have been sent, or first consumed, to be known again.
LOOKBACK_HOURS: Final = 24


def sends(events: DataFrame) -> DataFrame:
    """One row per Pub record: (sent_ms, topic, producer_group, msg_type, msg_id, messages, bytes,
    cost_ms, success). `messages` is more than 1 for a batch, whose msg_id holds all ids joined by
    commas.
    """
    pubs = events.where(F.col("kind") == "Pub")
    return (
        pubs.select(
            F.col("event_ms").alias("sent_ms"),
            known("topic"),
            known("group_name").alias("producer_group"),
            F.col("msg_type").cast("int").alias("msg_type"),
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
        .repartition("msg_id")
        .groupBy("msg_id", "request_id")
        .agg(
            F.min(F.when(before, F.col("event_ms"))).alias("begin_ms"),
            F.max(F.when(before, known("group_name"))).alias("begin_group"),
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


def deliveries(events: DataFrame, retry_times_max: Mapping[str, int] | None = None) -> DataFrame:
    """The attempts with what the producer's records say about their message, and what they are
    among the group's attempts: (…, topic, producer_group, msg_type, sent_ms, stored_ms, place,
    attempts, latency_ms, end_to_end_ms, is_dead_letter).

    `place` counts from 0 in causal order. `latency_ms` is null but on the first attempt,
    `end_to_end_ms` but on the success that ended first. `retry_times_max` is of the groups that do
    not retry RETRY_TIMES_MAX_DEFAULT times.
    """
    grouped = (
        attempts(events)
        .groupBy("msg_id", "consumer_group")
        .agg(F.collect_list(_attempt_struct()).alias("told"))
    )
    origin = origins(sends(events))
    joined = grouped.join(origin, "msg_id", "left").withColumn("ordered", F.expr(_ORDERED))
    settled = joined.withColumn("settled", F.expr(_SETTLED)).withColumn(
        "success_ends", F.expr(_SUCCESS_ENDS)
    )
    limit = F.lit(RETRY_TIMES_MAX_DEFAULT)
    if retry_times_max:
        pairs = [F.lit(part) for pair in sorted(retry_times_max.items()) for part in pair]
        limit = F.coalesce(F.try_element_at(F.create_map(*pairs), "consumer_group"), limit)
    places = {"success_place": F.expr(_SUCCESS_PLACE), "dead_place": F.expr(_DEAD_PLACE)}
    return _attempt_rows(settled.withColumns({**places, "limit": limit}))


def origins(sent: DataFrame) -> DataFrame:
    """For each message its topic, its producer, its kind, and when it was sent and stored."""
    each = sent.select(
        F.explode(F.split("msg_id", ",")).alias("msg_id"),
        "sent_ms",
        "topic",
        "producer_group",
        "msg_type",
        (F.col("sent_ms") + F.floor(F.col("cost_ms") / 2)).alias("middle_ms"),
        "success",
    )
    return (
        each.repartition("msg_id")
        .groupBy("msg_id")
        .agg(
            F.min(F.struct("sent_ms", "topic", "producer_group", "msg_type")).alias("first"),
            F.min(F.when(F.col("success"), F.struct("sent_ms", "middle_ms"))).alias("stored"),
        )
        .select("msg_id", "first.*", F.col("stored.middle_ms").alias("stored_ms"))
    )


def known(name: str) -> Column:
    """An empty text says that the writer of the record did not know."""
    return F.when(F.col(name) != "", F.col(name)).alias(name)


# One group's attempts on one message are an array from here on. Most have one element, so the
# expressions answer that case first; those for more are functions over arrays.

#: By retry, then time; an attempt whose retry is not known goes where its time puts it.
_ORDERED: Final = """
CASE WHEN size(told) = 1 THEN told ELSE aggregate(
    array_sort(filter(told, a -> a.retry_times IS NULL)),
    array_sort(filter(told, a -> a.retry_times IS NOT NULL)),
    (sorted, lost) -> array_insert(
        sorted,
        CAST(coalesce(
            nullif(array_position(transform(sorted, a -> a.start_ms > lost.start_ms), true), 0),
            size(sorted) + 1
        ) AS INT),
        lost
    )
) END
"""

_BEGIN: Final = "coalesce(sent_ms, 0)"
#: The ordered attempts with times moved behind their cause.
_SETTLED: Final = f"""
CASE WHEN size(told) = 1 THEN
    transform(told, a -> named_struct(
        'start_ms', greatest(a.start_ms, {_BEGIN}), 'duration_ms', a.duration_ms,
        'success', a.success))
ELSE aggregate(
    ordered,
    named_struct(
        'cause_ms', {_BEGIN}, 'end_ms', {_BEGIN}, 'level', CAST(NULL AS BIGINT),
        'done', CAST(
            array() AS ARRAY<STRUCT<start_ms: BIGINT, duration_ms: BIGINT, success: BOOLEAN>>)),
    (so_far, a) -> named_struct(
        'cause_ms', if(a.retry_times <=> so_far.level, so_far.cause_ms, so_far.end_ms),
        'end_ms', greatest(so_far.end_ms, coalesce(a.duration_ms, 0) + greatest(
            a.start_ms, if(a.retry_times <=> so_far.level, so_far.cause_ms, so_far.end_ms))),
        'level', a.retry_times,
        'done', array_append(so_far.done, named_struct(
            'start_ms', greatest(
                a.start_ms, if(a.retry_times <=> so_far.level, so_far.cause_ms, so_far.end_ms)),
            'duration_ms', a.duration_ms, 'success', a.success))),
    so_far -> so_far.done
) END
"""

_SUCCESS_ENDS: Final = "transform(settled, a -> if(a.success, a.start_ms + a.duration_ms, NULL))"
_SUCCESS_PLACE: Final = "array_position(success_ends, array_min(success_ends)) - 1"

#: Where the last failure stands, if the highest retry failed; a dead letter if it was the last.
_DEAD_PLACE: Final = """
CASE WHEN size(ordered) = 1 THEN if(ordered[0].success = false, 0, NULL)
ELSE array_max(transform(ordered, (a, i) -> if(
    a.success = false AND a.retry_times <=> ordered[size(ordered) - 1].retry_times, i, NULL)))
END
"""


def _attempt_struct() -> Column:
    return F.struct("retry_times", "start_ms", "request_id", "finished", "success", "duration_ms")


def _attempt_rows(placed: DataFrame) -> DataFrame:
    """Back to one row per attempt."""
    rows = placed.select("*", F.posexplode("ordered").alias("place", "attempt"))
    first, attempt = F.col("place") == 0, F.col("attempt")
    corrected = F.expr("get(settled, place)")
    # A send that lies further back is not known when only the later hour is read.
    is_near = F.col("sent_ms") >= _hour(attempt.start_ms) - LOOKBACK_HOURS * HOUR_MS
    waited = _never_negative(corrected.start_ms - F.col("stored_ms"))
    ended = F.coalesce(F.col("place") == F.col("success_place"), F.lit(False))
    took = _never_negative(F.array_min("success_ends") - F.col("sent_ms"))
    is_last_try = attempt.retry_times >= F.col("limit")
    return rows.select(
        attempt.start_ms.alias("start_ms"),
        *(F.when(is_near, F.col(name)).alias(name) for name in _ORIGIN),
        "consumer_group",
        "msg_id",
        attempt.retry_times.alias("retry_times"),
        attempt.finished.alias("finished"),
        attempt.success.alias("success"),
        attempt.duration_ms.alias("duration_ms"),
        "place",
        F.size("ordered").cast("bigint").alias("attempts"),
        F.when(is_near & first, waited).alias("latency_ms"),
        F.when(is_near & ended, took).alias("end_to_end_ms"),
        ended.alias("is_first_success"),
        F.coalesce((F.col("place") == F.col("dead_place")) & is_last_try, F.lit(False)).alias(
            "is_dead_letter"
        ),
    )


_ORIGIN: Final = ("topic", "producer_group", "msg_type", "sent_ms", "stored_ms")


def _never_negative(span_ms: Column) -> Column:
    """Null stays null."""
    return F.when(span_ms < 0, F.lit(0)).otherwise(span_ms)


def _hour(time_ms: Column) -> Column:
    return time_ms - F.pmod(time_ms, F.lit(HOUR_MS))


def _end_columns() -> list[Column]:
    return [
        _cost().alias("cost_ms"),
        F.col("success"),
        known("group_name").alias("consumer_group"),
    ]


def _cost() -> Column:
    return F.least(F.greatest(F.lit(0), "cost_ms"), F.lit(COST_MAX_MS))
