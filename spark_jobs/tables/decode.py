"""Decode the bodies of trace messages to trace events, in Spark expressions only.

The rules are the rules of `trace.codec.decode_trace`, and a test compares the results record by
record. 0x02 ends a record and 0x01 separates fields. A SubAfter of a 4.9 client that runs into the
next record is split first. A malformed record becomes a row of kind Broken with its text.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trace.tables import EVENTS

BROKEN: Final = "Broken"
RAW_CHARS_MAX: Final = 512
#: Maximum difference between a client's timestamp and the store time, ms. Beyond the limit the
#: client's clock counts as wrong, and the store time is used.
CLOCK_SKEW_MAX_MS: Final = 24 * 3600 * 1000

# Value: field index in each kind of record, in the order of _FIELDS_MIN. Field 0 is the kind
# itself; -1 means absent.
_FIELDS_MIN: Final = {"Pub": 13, "SubBefore": 7, "SubAfter": 5, "EndTransaction": 13, "Recall": 7}
_TEXTS: Final[Mapping[str, tuple[int, ...]]] = {
    "region_id": (2, 2, -1, 2, 2),
    "group_name": (3, 3, 8, 3, 3),
    "topic": (4, -1, -1, 4, 4),
    "request_id": (-1, 4, 1, -1, -1),
    "msg_id": (5, 5, 2, 5, 5),
    "tags": (6, -1, -1, 6, -1),
    "keys": (7, 7, 5, 7, -1),
    "store_host": (8, -1, -1, 8, -1),
    "offset_msg_id": (12, -1, -1, -1, -1),
    "client_host": (14, -1, -1, -1, -1),
    "transaction_id": (-1, -1, -1, 10, -1),
    "transaction_state": (-1, -1, -1, 11, -1),
}
_NUMBERS: Final[Mapping[str, tuple[int, ...]]] = {
    "timestamp_ms": (1, 1, 7, 1, 1),
    "body_bytes": (9, -1, -1, -1, -1),
    "cost_ms": (10, -1, 3, -1, -1),
    "msg_type": (11, -1, -1, 9, -1),
    "retry_times": (-1, 6, -1, -1, -1),
    "context_code": (-1, -1, 6, -1, -1),
}
_FLAGS: Final[Mapping[str, tuple[int, ...]]] = {
    "success": (13, -1, 4, -1, 6),
    "from_transaction_check": (-1, -1, -1, 12, -1),
}
_EMPTY_IN_SUB_AFTER: Final = {"timestamp_ms", "context_code"}

EVENT_SCHEMA: Final = EVENTS.schema

_FIELD, _END = "\x01", "\x02"
_KINDS = "|".join(_FIELDS_MIN)
_GLUED = rf"\G(SubAfter(?:{_FIELD}[^{_FIELD}]*+){{6}}){_FIELD}(?=(?:{_KINDS})(?:{_FIELD}|\z))"


def decode_events(messages: DataFrame) -> DataFrame:
    """One row per trace record in `messages`.

    `messages` has broker_name, queue_id, queue_offset, store_timestamp and body; the result has
    EVENT_SCHEMA. `event_ms` is the client's timestamp, or the store time when the client's
    timestamp is absent or implausible.
    """
    records = messages.select(
        F.col("broker_name").alias("broker"),
        "queue_id",
        "queue_offset",
        F.unix_millis("store_timestamp").alias("stored_ms"),
        F.posexplode(_records(F.col("body"))).alias("record_index", "record"),
    )
    fields = records.withColumn("fields", F.split("record", _FIELD))
    kinds = ", ".join(f"'{kind}'" for kind in _FIELDS_MIN)
    known = fields.selectExpr(
        "* EXCEPT (fields)",
        f"array_position(array({kinds}), fields[0]) AS kind_number",
        # Old producers omit offsetMsgId (field 12): shift success to its regular index.
        "if(fields[0] = 'Pub' AND size(fields) = 13, array_insert(fields, 13, ''), fields)"
        " AS fields",
    )
    cut = known.selectExpr(
        "*", *(f"{_field(positions)} AS {name}" for name, positions in _ALL.items())
    )
    checked = cut.selectExpr("*", f"{_is_broken()} AS is_broken")
    return checked.selectExpr(*_event_columns())


_ALL: Final = {**_TEXTS, **_NUMBERS, **_FLAGS}


def _records(body: Column) -> Column:
    """The records of a body; invalid UTF-8 bytes become U+FFFD."""
    text = F.make_valid_utf8(body.cast("string"))
    records = F.transform(
        F.split(text, _END),
        lambda piece: F.split(F.regexp_replace(piece, _GLUED, f"$1{_END}"), _END),
    )
    return F.filter(F.flatten(records), lambda record: record != "")


def _field(positions: tuple[int, ...]) -> str:
    """SQL for the text of a value; null when the kind lacks the value or the record is too
    short.
    """
    return f"get(fields, get(array{positions}, CAST(kind_number AS INT) - 1))"


def _has(name: str) -> str:
    """SQL for whether the record's kind has the value."""
    return f"coalesce(get(array{_ALL[name]}, CAST(kind_number AS INT) - 1) >= 0, false)"


def _number(name: str) -> str:
    return f"if({name} RLIKE r'^-?[0-9]{{1,19}}\\z', try_cast({name} AS BIGINT), NULL)"


def _is_broken() -> str:
    least = ", ".join(map(str, _FIELDS_MIN.values()))
    tests = [
        "kind_number = 0",
        f"size(fields) < get(array({least}), CAST(kind_number AS INT) - 1)",
        *(f"({_is_wrong_number(name)})" for name in _NUMBERS),
    ]
    return f"coalesce({' OR '.join(tests)}, false)"


def _is_wrong_number(name: str) -> str:
    wrong = f"{name} IS NOT NULL AND {_number(name)} IS NULL"
    if name in _EMPTY_IN_SUB_AFTER:
        wrong += f" AND NOT (fields[0] = 'SubAfter' AND {name} IN ('', 'null'))"
    return wrong


def _event_columns() -> list[str]:
    """The columns of EVENT_SCHEMA; a broken record has its text in `raw` and null values."""
    timestamp = _number("timestamp_ms")
    skew = CLOCK_SKEW_MAX_MS
    believable = f"{timestamp} BETWEEN stored_ms - {skew} AND stored_ms + {skew}"
    text = "if({name} = 'null', '', coalesce({name}, ''))"
    values = {
        **{name: f"if({_has(name)}, {text.format(name=name)}, NULL)" for name in _TEXTS},
        **{name: _number(name) for name in _NUMBERS},
        **{name: f"lower({name}) = 'true'" for name in _FLAGS},
    }
    return [
        *("broker", "queue_id", "queue_offset", "record_index", "stored_ms"),
        f"if(is_broken, '{BROKEN}', fields[0]) AS kind",
        f"if(NOT is_broken AND {believable}, {timestamp}, stored_ms) AS event_ms",
        *(f"if(is_broken, NULL, {value}) AS {name}" for name, value in values.items()),
        f"if(is_broken, substring(record, 1, {RAW_CHARS_MAX}), NULL) AS raw",
    ]
