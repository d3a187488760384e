"""Facts from trace events: one row per send of a message, one row per attempt to consume a message.

Pure DataFrame functions with the rules of `trace.timeline`: a record repeated by the client's retry
counts once; an attempt is a SubBefore and a SubAfter of the same request; the store time of a
message is the middle of its first successful send; an effect never starts before its cause,
regardless of clock errors.

One shuffle by message id groups all events of a message; the later steps need no further shuffle.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trace.attempts import RETRY_TIMES_MAX_DEFAULT
from trace.lake import HOUR_MS, HourIndex

#: Maximum cost of a send or listener, ms; a larger value comes from a wrong clock and is capped.
COST_MAX_MS: Final = 24 * 3600 * 1000
#: Maximum age, in hours, of a send or first attempt that is joined with later attempts.
LOOKBACK_HOURS: Final = 24
#: Maximum delay, in hours, of an event that changes an earlier hour.
LOOKAHEAD_HOURS: Final = 24


def hours_around(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours whose events may concern messages of `hours`."""
    return {
        hour + distance
        for hour in hours
        for distance in range(-LOOKBACK_HOURS, LOOKAHEAD_HOURS + 1)
    }


def sends(events: DataFrame) -> DataFrame:
    """One row per Pub record: (sent_ms, topic, producer_group, msg_type, msg_id, messages, bytes,
    cost_ms, success).

    A batch has `messages` greater than 1 and the ids of all its messages in `msg_id`, joined by
    commas.
    """
    pubs = events.where(F.col("kind") == "Pub")
    return (
        pubs.select(
            F.col("event_ms").alias("sent_ms"),
            null_if_empty("topic"),
            null_if_empty("group_name").alias("producer_group"),
            F.col("msg_type").cast("int").alias("msg_type"),
            "msg_id",
            F.size(F.split("msg_id", ",")).cast("bigint").alias("messages"),
            F.greatest(F.lit(0), "body_bytes").alias("bytes"),
            _cost().alias("cost_ms"),
            "success",
        )
        # The topic may hold a trace message twice; two attempts of one send differ in time.
        .dropDuplicates()
    )


def attempts(events: DataFrame) -> DataFrame:
    """One row per listener call and message: (msg_id, request_id, consumer_group, start_ms,
    retry_times, finished, success, duration_ms). Unrecorded values are null.
    """
    before, after = F.col("kind") == "SubBefore", F.col("kind") == "SubAfter"
    paired = (
        events.where(before | after)
        .repartition("msg_id")
        .groupBy("msg_id", "request_id")
        .agg(
            F.min(F.when(before, F.col("event_ms"))).alias("begin_ms"),
            F.max(F.when(before, null_if_empty("group_name"))).alias("begin_group"),
            F.max(F.when(before, F.col("retry_times"))).alias("retry_times"),
            # Of two SubAfter records of one request the first counts.
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
    """The attempts, joined with the send of the message and with the group's other attempts.

    Adds (topic, producer_group, msg_type, sent_ms, stored_ms, attempt_index, attempts, latency_ms,
    end_to_end_ms, is_dead_letter). `attempt_index` counts from 0 in causal order. `latency_ms` is
    set on the first attempt only, `end_to_end_ms` on the earliest success only. `retry_times_max`
    holds the groups with a limit other than RETRY_TIMES_MAX_DEFAULT.
    """
    grouped = (
        attempts(events)
        .groupBy("msg_id", "consumer_group")
        .agg(F.collect_list(_attempt_struct()).alias("recorded"))
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
    indexes = {"success_index": F.expr(_SUCCESS_INDEX), "dead_index": F.expr(_DEAD_INDEX)}
    return _attempt_rows(settled.withColumns({**indexes, "limit": limit}))


def origins(sent: DataFrame) -> DataFrame:
    """One row per message: topic, producer group, kind, send time and store time."""
    single_sends = sent.select(
        F.explode(F.split("msg_id", ",")).alias("msg_id"),
        "sent_ms",
        "topic",
        "producer_group",
        "msg_type",
        (F.col("sent_ms") + F.floor(F.col("cost_ms") / 2)).alias("middle_ms"),
        "success",
    )
    return (
        single_sends.repartition("msg_id")
        .groupBy("msg_id")
        .agg(
            F.min(F.struct("sent_ms", "topic", "producer_group", "msg_type")).alias("first"),
            F.min(F.when(F.col("success"), F.struct("sent_ms", "middle_ms"))).alias("stored"),
        )
        .select("msg_id", "first.*", F.col("stored.middle_ms").alias("stored_ms"))
    )


def null_if_empty(name: str) -> Column:
    """Null for an empty text: the writer of the record did not know the value."""
    return F.when(F.col(name) != "", F.col(name)).alias(name)


# From here on, one group's attempts on one message are an array. Most arrays have one element, so
# the expressions handle one element first; the other branch uses higher-order functions.

#: Sorted by retry count, then time; attempts without a retry count are inserted by time.
_ORDERED: Final = """
CASE WHEN size(recorded) = 1 THEN recorded ELSE aggregate(
    array_sort(filter(recorded, a -> a.retry_times IS NULL)),
    array_sort(filter(recorded, a -> a.retry_times IS NOT NULL)),
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
#: The sorted attempts; an attempt that starts before its cause is moved to its cause.
_SETTLED: Final = f"""
CASE WHEN size(recorded) = 1 THEN
    transform(recorded, a -> named_struct(
        'start_ms', greatest(a.start_ms, {_BEGIN}), 'duration_ms', a.duration_ms,
        'success', a.success))
ELSE aggregate(
    ordered,
    named_struct(
        'cause_ms', {_BEGIN}, 'end_ms', {_BEGIN}, 'level', CAST(NULL AS BIGINT),
        'done', CAST(
            array() AS ARRAY<STRUCT<start_ms: BIGINT, duration_ms: BIGINT, success: BOOLEAN>>)),
    (state, a) -> named_struct(
        'cause_ms', if(a.retry_times <=> state.level, state.cause_ms, state.end_ms),
        'end_ms', greatest(state.end_ms, coalesce(a.duration_ms, 0) + greatest(
            a.start_ms, if(a.retry_times <=> state.level, state.cause_ms, state.end_ms))),
        'level', a.retry_times,
        'done', array_append(state.done, named_struct(
            'start_ms', greatest(
                a.start_ms, if(a.retry_times <=> state.level, state.cause_ms, state.end_ms)),
            'duration_ms', a.duration_ms, 'success', a.success))),
    state -> state.done
) END
"""

_SUCCESS_ENDS: Final = "transform(settled, a -> if(a.success, a.start_ms + a.duration_ms, NULL))"
_SUCCESS_INDEX: Final = "array_position(success_ends, array_min(success_ends)) - 1"

#: Index of the last failure when the highest retry failed: a dead letter at the retry limit.
_DEAD_INDEX: Final = """
CASE WHEN size(ordered) = 1 THEN if(ordered[0].success = false, 0, NULL)
ELSE array_max(transform(ordered, (a, i) -> if(
    a.success = false AND a.retry_times <=> ordered[size(ordered) - 1].retry_times, i, NULL)))
END
"""


def _attempt_struct() -> Column:
    return F.struct("retry_times", "start_ms", "request_id", "finished", "success", "duration_ms")


def _attempt_rows(indexed: DataFrame) -> DataFrame:
    """One row per attempt again."""
    rows = indexed.select("*", F.posexplode("ordered").alias("attempt_index", "attempt"))
    first, attempt = F.col("attempt_index") == 0, F.col("attempt")
    corrected = F.expr("get(settled, attempt_index)")
    # Older sends are unknown when only the later hour is read: use no older send in any case.
    is_near = F.col("sent_ms") >= _hour(attempt.start_ms) - LOOKBACK_HOURS * HOUR_MS
    waited = _never_negative(corrected.start_ms - F.col("stored_ms"))
    ended = F.coalesce(F.col("attempt_index") == F.col("success_index"), F.lit(False))
    end_to_end_ms = _never_negative(F.array_min("success_ends") - F.col("sent_ms"))
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
        "attempt_index",
        F.size("ordered").cast("bigint").alias("attempts"),
        F.when(is_near & first, waited).alias("latency_ms"),
        F.when(is_near & ended, end_to_end_ms).alias("end_to_end_ms"),
        ended.alias("is_first_success"),
        F.coalesce(
            (F.col("attempt_index") == F.col("dead_index")) & is_last_try, F.lit(False)
        ).alias("is_dead_letter"),
    )


_ORIGIN: Final = ("topic", "producer_group", "msg_type", "sent_ms", "stored_ms")


def _never_negative(span_ms: Column) -> Column:
    """Negative values become 0; null stays null."""
    return F.when(span_ms < 0, F.lit(0)).otherwise(span_ms)


def _hour(time_ms: Column) -> Column:
    return time_ms - F.pmod(time_ms, F.lit(HOUR_MS))


def _end_columns() -> list[Column]:
    return [
        _cost().alias("cost_ms"),
        F.col("success"),
        null_if_empty("group_name").alias("consumer_group"),
    ]


def _cost() -> Column:
    return F.least(F.greatest(F.lit(0), "cost_ms"), F.lit(COST_MAX_MS))
