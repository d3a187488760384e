"""The hours whose derived tables change when new trace events arrive. Pure functions.

Events arrive late and separately: the end of an attempt in a later run than its start, the record
of a send after the record of the consumption. An hour becomes stale when it contains

- a new event, or the start of an attempt with a new end;
- an older attempt with a new SubBefore, SubAfter or Pub record;
- an older attempt of a message with a new, earlier attempt;
- an older send of a message with a new event of consumption, recall or transaction end: the message
  may have counted as never consumed.

Hours also become stale when the watermark passes the never-consumed limit of their sends.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.tables.message_flow import NEVER_CONSUMED_AFTER_MS
from trace.attempts import COST_MAX_MS
from trace.lake import HOUR_MS, HourIndex, hour_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_CONSUME_KINDS = ("SubBefore", "SubAfter")


def changed_hours(new: "RecordBatch") -> set[HourIndex]:
    """The hours of new events of sends and attempts; an end counts at the start of its attempt."""
    import numpy
    import pyarrow
    import pyarrow.compute as pc

    kind = new.column("kind")
    cost_ms = new.column("cost_ms").fill_null(0).to_numpy().clip(0, COST_MAX_MS)
    is_end = pc.equal(kind, "SubAfter").to_numpy(zero_copy_only=False)
    start_ms = new.column("event_ms").to_numpy() - numpy.where(is_end, cost_ms, 0)
    is_counted = pc.is_in(kind, pyarrow.array(["Pub", *_CONSUME_KINDS]))
    counted_ms = start_ms[is_counted.to_numpy(zero_copy_only=False)]
    return set(numpy.unique(counted_ms // HOUR_MS).tolist())


def invalidated_hours(new: DataFrame, older: DataFrame) -> DataFrame:
    """The distinct hours (column `hour`, since 1970) in which `new` changes rows of `older` events.

    `older` are the events of earlier runs around the new events.
    """
    changed = _changed_attempts(new, older).select(F.col("event_ms").alias("at_ms"))
    changed_ms = changed.union(_settled_sends(new, older))
    return changed_ms.select(F.floor(F.col("at_ms") / HOUR_MS).alias("hour")).distinct()


def newly_overdue_hours(watermark_before_ms: int, watermark_ms: int) -> Iterable[HourIndex]:
    """The hours with sends that passed the never-consumed limit between the two watermarks."""
    if watermark_ms <= watermark_before_ms or not watermark_before_ms:
        return ()
    first = hour_of(watermark_before_ms - NEVER_CONSUMED_AFTER_MS)
    return range(first, hour_of(watermark_ms - NEVER_CONSUMED_AFTER_MS) + 1)


def _settled_sends(new: DataFrame, older: DataFrame) -> DataFrame:
    settled = new.where(F.col("kind") != "Pub").select("msg_id").distinct()
    sent = older.where(F.col("kind") == "Pub").select(
        F.explode(F.split("msg_id", ",")).alias("msg_id"), F.col("event_ms").alias("at_ms")
    )
    return sent.join(settled, "msg_id", "left_semi").select("at_ms")


def _changed_attempts(new: DataFrame, older: DataFrame) -> DataFrame:
    consuming = F.col("kind").isin(*_CONSUME_KINDS)
    new_by_message = (
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
    is_changed = (
        F.col("has_send")
        | F.array_contains("requests", F.col("request_id"))
        | F.coalesce(F.col("event_ms") >= F.col("first_ms"), F.lit(False))
    )
    attempts = older.where(consuming).select("msg_id", "request_id", "event_ms")
    return attempts.join(new_by_message, "msg_id").where(is_changed)
