"""Bodies of trace messages to trace events, in Spark expressions only.

The rules are those of `trace.codec.decode_trace`, which a test compares record by record: text is
cut at 0x02 into records and at 0x01 into fields, a 4.9 SubAfter that ran into its follower is cut
off first, and a record that does not fit becomes a row of kind Broken that keeps its text.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

BROKEN: Final = "Broken"
RAW_CHARS_MAX: Final = 512
CLOCK_SKEW_MAX_MS: Final = 24 * 3600 * 1000
"""A client's timestamp this far from the broker's is a wrong clock: the broker's counts then."""

_FIELDS_MIN: Final = {"Pub": 13, "SubBefore": 7, "SubAfter": 5, "EndTransaction": 13, "Recall": 7}

# Where a value stands in each kind of record; the kind itself is field 0.
_TEXTS: Final[Mapping[str, Mapping[str, int]]] = {
    "region_id": {"Pub": 2, "SubBefore": 2, "EndTransaction": 2, "Recall": 2},
    "group_name": {"Pub": 3, "SubBefore": 3, "SubAfter": 8, "EndTransaction": 3, "Recall": 3},
    "topic": {"Pub": 4, "EndTransaction": 4, "Recall": 4},
    "request_id": {"SubBefore": 4, "SubAfter": 1},
    "msg_id": {"Pub": 5, "SubBefore": 5, "SubAfter": 2, "EndTransaction": 5, "Recall": 5},
    "tags": {"Pub": 6, "EndTransaction": 6},
    "keys": {"Pub": 7, "SubBefore": 7, "SubAfter": 5, "EndTransaction": 7},
    "store_host": {"Pub": 8, "EndTransaction": 8},
    "offset_msg_id": {"Pub": 12},
    "client_host": {"Pub": 14},
    "transaction_id": {"EndTransaction": 10},
    "transaction_state": {"EndTransaction": 11},
}
_NUMBERS: Final[Mapping[str, Mapping[str, int]]] = {
    "timestamp_ms": {"Pub": 1, "SubBefore": 1, "SubAfter": 7, "EndTransaction": 1, "Recall": 1},
    "body_bytes": {"Pub": 9},
    "cost_ms": {"Pub": 10, "SubAfter": 3},
    "msg_type": {"Pub": 11, "EndTransaction": 9},
    "retry_times": {"SubBefore": 6},
    "context_code": {"SubAfter": 6},
}
_FLAGS: Final[Mapping[str, Mapping[str, int]]] = {
    "success": {"Pub": 13, "SubAfter": 4, "Recall": 6},
    "from_transaction_check": {"EndTransaction": 12},
}
_MAY_BE_EMPTY: Final = {("timestamp_ms", "SubAfter"), ("context_code", "SubAfter")}

EVENT_SCHEMA: Final = ", ".join(
    (
        "broker string, queue_id int, queue_offset bigint, record_index int, stored_ms bigint",
        "kind string, event_ms bigint",
        *(f"{name} string" for name in _TEXTS),
        *(f"{name} bigint" for name in _NUMBERS),
        *(f"{name} boolean" for name in _FLAGS),
        "raw string",
    )
)

_FIELD, _END = "\x01", "\x02"
_KINDS = "|".join(_FIELDS_MIN)
_GLUED = rf"\G(SubAfter(?:{_FIELD}[^{_FIELD}]*+){{6}}){_FIELD}(?=(?:{_KINDS})(?:{_FIELD}|\z))"


def decode_events(messages: DataFrame) -> DataFrame:
    """One row per trace record in `messages`.

    `messages` has broker_name, queue_id, queue_offset, store_timestamp and body; the result has
    EVENT_SCHEMA. `event_ms` is when it happened by the client's clock, or by the broker's where
    the client gave no believable time.
    """
    records = messages.select(
        F.col("broker_name").alias("broker"),
        "queue_id",
        "queue_offset",
        F.unix_millis("store_timestamp").alias("stored_ms"),
        F.posexplode(_records(F.col("body"))).alias("record_index", "record"),
    )
    cut = records.select(
        "*",
        F.split("record", _FIELD).alias("fields"),
        F.substring_index("record", _FIELD, 1).alias("first"),
    )
    values = cut.select("*", *_values(F.col("first"), F.col("fields")))
    broken = _is_broken(F.col("first"), F.col("fields"))
    judged = values.withColumn("kind", F.when(broken, BROKEN).otherwise(F.col("first")))
    return judged.select(*_event_columns())


def _records(body: Column) -> Column:
    text = F.make_valid_utf8(body.cast("string"))
    unglued = F.transform(
        F.split(text, _END),
        lambda piece: F.split(F.regexp_replace(piece, _GLUED, f"$1{_END}"), _END),
    )
    return F.filter(F.flatten(unglued), lambda record: record != "")


def _values(kind: Column, fields: Column) -> list[Column]:
    return [
        *(_text(kind, fields, places).alias(name) for name, places in _TEXTS.items()),
        *(_number(_field(kind, fields, places)).alias(name) for name, places in _NUMBERS.items()),
        *(
            (F.lower(_field(kind, fields, places)) == "true").alias(name)
            for name, places in _FLAGS.items()
        ),
    ]


def _field(kind: Column, fields: Column, places: Mapping[str, int]) -> Column:
    """The field of the record's own kind; null where the kind has none or the record ends early."""
    cases = [F.when(kind == name, _at(name, fields, place)) for name, place in places.items()]
    return F.coalesce(*cases)


def _at(kind: str, fields: Column, place: int) -> Column:
    if kind == "Pub" and place >= 12:
        # Old producers leave out offsetMsgId (field 12): success moves up.
        short = F.get(fields, F.lit(12)) if place == 13 else F.lit(None)
        return F.when(F.size(fields) == 13, short).otherwise(F.get(fields, F.lit(place)))
    return F.get(fields, F.lit(place))


def _text(kind: Column, fields: Column, places: Mapping[str, int]) -> Column:
    given = _field(kind, fields, places)
    return F.when(
        kind.isin(*places), F.when(given == "null", "").otherwise(F.coalesce(given, F.lit("")))
    )


def _number(text: Column) -> Column:
    return F.when(text.rlike(r"^-?[0-9]{1,19}\z"), text.try_cast("bigint"))


def _is_broken(kind: Column, fields: Column) -> Column:
    short = [
        (kind == name) & (F.size(fields) < fields_min) for name, fields_min in _FIELDS_MIN.items()
    ]
    wrong = [
        (kind == holder) & _is_wrong_number(_at(holder, fields, place), (name, holder))
        for name, places in _NUMBERS.items()
        for holder, place in places.items()
    ]
    return ~kind.isin(*_FIELDS_MIN) | reduce(or_, short) | reduce(or_, wrong)


def _is_wrong_number(text: Column, place: tuple[str, str]) -> Column:
    no_number = text.isNotNull() & _number(text).isNull()
    return no_number & ~text.isin("", "null") if place in _MAY_BE_EMPTY else no_number


def _event_columns() -> list[Column]:
    """The columns of EVENT_SCHEMA; a broken record keeps its text and loses its values."""
    sound = F.col("kind") != BROKEN
    return [
        F.col("broker"),
        F.col("queue_id"),
        F.col("queue_offset"),
        F.col("record_index"),
        F.col("stored_ms"),
        F.col("kind"),
        F.when(sound & _is_believable(), F.col("timestamp_ms"))
        .otherwise(F.col("stored_ms"))
        .alias("event_ms"),
        *(F.when(sound, F.col(name)).alias(name) for name in (*_TEXTS, *_NUMBERS, *_FLAGS)),
        F.when(~sound, F.substring("record", 1, RAW_CHARS_MAX)).alias("raw"),
    ]


def _is_believable() -> Column:
    stored = F.col("stored_ms")
    return F.col("timestamp_ms").between(stored - CLOCK_SKEW_MAX_MS, stored + CLOCK_SKEW_MAX_MS)
