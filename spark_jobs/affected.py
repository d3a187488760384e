"""Which hours of the derived tables change when new trace events arrive. Pure functions.

Events come late and in pieces: the end of an attempt in a later run than its start, the record of
a send after that of the consumption. So an hour is affected when it holds

- a new event itself, or the start of the attempt that a new event ends;
- an older attempt whose other half, or whose message's send, is new;
- an older attempt of a message for which a new event shows an earlier attempt,
- an older send of a message that a new event shows consumed, recalled or decided on: it may have
  counted as never consumed.

So is an hour whose sends became old enough to count as never consumed by what was heard since.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.facts import COST_MAX_MS
from spark_jobs.paths import NEVER_CONSUMED_AFTER_MS
from trace.lake import HOUR_MS, HourIndex, hour_of

_CONSUMING = ("SubBefore", "SubAfter")


def affected_hours(new: DataFrame, older: DataFrame | None) -> DataFrame:
    """The distinct hours (column `hour`, since 1970) whose tables must be made again.

    `older` are the events of earlier runs that may belong to the same messages, if there are any.
    """
    cost = F.least(F.greatest(F.coalesce("cost_ms", F.lit(0)), F.lit(0)), F.lit(COST_MAX_MS))
    is_end = F.col("kind") == "SubAfter"
    start_ms = F.when(is_end, F.col("event_ms") - cost).otherwise(F.col("event_ms"))
    own = new.where(F.col("kind").isin("Pub", *_CONSUMING)).select(start_ms.alias("at_ms"))
    if older is not None:
        changed = _older_attempts(new, older).select(F.col("event_ms").alias("at_ms"))
        own = own.union(changed).union(_older_sends(new, older))
    return own.select(F.floor(F.col("at_ms") / HOUR_MS).alias("hour")).distinct()


def newly_due_hours(told_before_ms: int, told_until_ms: int) -> Iterable[HourIndex]:
    """The hours with sends that count as never consumed now and did not before."""
    if told_until_ms <= told_before_ms or not told_before_ms:
        return ()
    first = hour_of(told_before_ms - NEVER_CONSUMED_AFTER_MS)
    return range(first, hour_of(told_until_ms - NEVER_CONSUMED_AFTER_MS) + 1)


def _older_sends(new: DataFrame, older: DataFrame) -> DataFrame:
    settled = new.where(F.col("kind") != "Pub").select("msg_id").distinct()
    sent = older.where(F.col("kind") == "Pub").select(
        F.explode(F.split("msg_id", ",")).alias("msg_id"), F.col("event_ms").alias("at_ms")
    )
    return sent.join(settled, "msg_id", "left_semi").select("at_ms")


def _older_attempts(new: DataFrame, older: DataFrame) -> DataFrame:
    consuming = F.col("kind").isin(*_CONSUMING)
    news = (
        new.where(consuming | (F.col("kind") == "Pub"))
        .select(
            F.explode(F.split("msg_id", ",")).alias("msg_id"),
            (F.col("kind") == "Pub").alias("is_send"),
            F.when(consuming, F.col("event_ms")).alias("event_ms"),
            "request_id",
        )
        .groupBy("msg_id")
        .agg(
            F.bool_or("is_send").alias("has_send"),
            F.min("event_ms").alias("first_ms"),
            F.collect_set("request_id").alias("requests"),
        )
    )
    touched = (
        F.col("has_send")
        | F.array_contains("requests", F.col("request_id"))
        | F.coalesce(F.col("event_ms") >= F.col("first_ms"), F.lit(False))
    )
    attempts = older.where(consuming).select("msg_id", "request_id", "event_ms")
    return attempts.join(news, "msg_id").where(touched)
