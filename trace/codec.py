"""The text of a trace message, to and from typed records.

Compatible with RocketMQ's TraceDataEncoder of 4.9 and 5.x. A message on RMQ_SYS_TRACE_TOPIC holds
UTF-8 text: 0x02 ends a record, 0x01 separates its fields.

    Pub             timestamp region group topic msgId tags keys storeHost bodyLength costTime
                    msgType offsetMsgId success [clientHost]
    SubBefore       timestamp region group requestId msgId retryTimes keys
    SubAfter        requestId msgId costTime success keys [contextCode [timestamp group]]
    EndTransaction  timestamp region group topic msgId tags keys storeHost msgType transactionId
                    transactionState fromTransactionCheck
    Recall          timestamp region group topic msgId success

Every record begins with its kind. Java writes null as the text ``null``; the codec reads "". The
codec accepts the variants of known writers: Pub without offsetMsgId (13 fields in all), fields
after the last known field, missing empty fields at the end, and SubAfter records of a 4.9 client on
the CLOUD channel, which end with 0x01 and run into the next record.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

FIELD_SEPARATOR: Final = "\x01"
RECORD_TERMINATOR: Final = "\x02"
#: Maximum broken records kept of one body; the count includes all broken records.
BROKEN_KEPT_MAX: Final = 64
BROKEN_TEXT_CHARS_MAX: Final = 512

_LONG_MAX: Final = 2**63 - 1
_UNPRINTED: Final = str.maketrans({FIELD_SEPARATOR: " ", RECORD_TERMINATOR: " "})


class MessageType(IntEnum):
    """Ordinals of RocketMQ's MessageType in Pub and EndTransaction."""

    NORMAL = 0
    TRANSACTION_HALF = 1
    TRANSACTION_COMMIT = 2
    DELAY = 3
    ORDER = 4


class ConsumeReturnType(IntEnum):
    """Ordinals of RocketMQ's ConsumeReturnType: the result of a listener call (contextCode)."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


class Pub(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a producer to send a message."""

    #: Start of the send by the producer's clock.
    timestamp_ms: int
    region_id: str = ""
    group: str
    topic: str
    msg_id: str
    tags: str = ""
    keys: str = ""
    store_host: str = ""
    body_bytes: int = 0
    cost_ms: int = 0
    msg_type: int = MessageType.NORMAL
    offset_msg_id: str = ""
    success: bool = True
    client_host: str = ""


class SubBefore(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer starts a listener call for one message."""

    timestamp_ms: int
    region_id: str = ""
    group: str
    #: Shared with the SubAfter of the same call; unique for each attempt.
    request_id: str
    msg_id: str
    retry_times: int = 0
    keys: str = ""


class SubAfter(msgspec.Struct, frozen=True, kw_only=True):
    """A listener call for one message ended."""

    request_id: str
    msg_id: str
    cost_ms: int
    success: bool
    keys: str = ""
    context_code: int | None = None
    #: End of the listener call; absent from older clients.
    timestamp_ms: int | None = None
    group: str = ""


class EndTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A producer committed or rolled back a half message."""

    timestamp_ms: int
    region_id: str = ""
    group: str
    topic: str
    msg_id: str
    tags: str = ""
    keys: str = ""
    store_host: str = ""
    msg_type: int = MessageType.TRANSACTION_COMMIT
    transaction_id: str = ""
    transaction_state: str = ""
    from_transaction_check: bool = False


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """A producer recalled a timer message (5.3.2 and later)."""

    timestamp_ms: int
    region_id: str = ""
    group: str
    topic: str
    msg_id: str
    success: bool = True


TraceRecord = Pub | SubBefore | SubAfter | EndTransaction | Recall


class BrokenRecord(msgspec.Struct, frozen=True):
    """Text between two terminators that cannot be decoded, and the reason."""

    text: str
    reason: str


class DecodedTrace(msgspec.Struct, frozen=True):
    """All records of one trace message; a broken record does not hide the valid records."""

    records: list[TraceRecord]
    #: At most BROKEN_KEPT_MAX records.
    broken: list[BrokenRecord]
    broken_count: int


def decode_trace(body: bytes | str) -> DecodedTrace:
    """Decode the body of a trace message. Never raises, for any bytes."""
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    records: list[TraceRecord] = []
    broken: list[BrokenRecord] = []
    broken_count = 0
    for segment in text.split(RECORD_TERMINATOR):
        if not segment:
            continue
        for fields in _unglued(segment.split(FIELD_SEPARATOR)):
            try:
                records.append(_read(fields))
            except ValueError as error:
                broken_count += 1
                if len(broken) < BROKEN_KEPT_MAX:
                    kept = FIELD_SEPARATOR.join(fields)[:BROKEN_TEXT_CHARS_MAX]
                    broken.append(BrokenRecord(kept, str(error)))
    return DecodedTrace(records, broken, broken_count)


def encode_trace(records: Iterable[TraceRecord]) -> bytes:
    """Encode records as Java 4.9.8 does. Separators inside a value become blanks."""
    return "".join(map(encode_record, records)).encode("utf-8", "replace")


def encode_record(record: TraceRecord) -> str:
    """One record with its terminator, for writers that fill a message up to its size limit."""
    kind = type(record).__name__
    values = [getattr(record, name) for name, _ in _LAYOUTS[kind].fields]
    if isinstance(record, Pub) and not record.client_host:
        values.pop()
    if isinstance(record, SubAfter) and record.timestamp_ms is None and not record.group:
        # The decoder recognizes the short form by its last, empty field.
        values[-2:] = [""]
    return FIELD_SEPARATOR.join([kind, *map(_field_text, values)]) + RECORD_TERMINATOR


def message_keys(records: Iterable[TraceRecord]) -> list[str]:
    """The KEYS of a trace message: the distinct message ids and keys of its records, in order."""
    keys: dict[str, None] = {}
    for record in records:
        keys[record.msg_id] = None
        if not isinstance(record, Recall):
            keys.update(dict.fromkeys(record.keys.split()))
    keys.pop("", None)
    return list(keys)


def _unglued(fields: list[str]) -> list[list[str]]:
    """Split a SubAfter that runs into the next records: a kind stands in place of its timestamp."""
    parts = []
    while fields[0] == "SubAfter" and len(fields) > 7 and fields[7] in _LAYOUTS:
        parts.append(fields[:7])
        fields = fields[7:]
    parts.append(fields)
    return parts


def _read(fields: list[str]) -> TraceRecord:
    layout = _LAYOUTS.get(fields[0])
    if layout is None:
        raise ValueError(f"unknown kind of record {fields[0][:40]!r}")
    if len(fields) < layout.fields_min:
        raise ValueError(f"{fields[0]} has only {len(fields)} fields")
    if layout.record is Pub and len(fields) == 13:
        fields = [*fields[:12], "", fields[12]]
    return layout.record(
        **{
            name: parse(text)
            for (name, parse), text in zip(layout.fields, fields[1:], strict=False)
        }
    )


def _text(field: str) -> str:
    return "" if field == "null" else field


def _flag(field: str) -> bool:
    return field.lower() == "true"


def _long(field: str) -> int:
    digits = field.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        raise ValueError(f"{field[:40]!r} is not a number")
    value = int(field)
    if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
        raise ValueError(f"{field} is not a 64-bit number")
    return value


def _optional_long(field: str) -> int | None:
    return _long(field) if _text(field) else None


def _field_text(value: str | int | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value.translate(_UNPRINTED)
    return "null" if value is None else str(int(value))


class _Layout(NamedTuple):
    """Fields after the kind, in text order: attribute and parser."""

    record: Callable[..., TraceRecord]
    #: Minimum number of fields, with the kind; a shorter record is broken.
    fields_min: int
    fields: tuple[tuple[str, Callable[[str], str | int | None]], ...]


_WHO = (("timestamp_ms", _long), ("region_id", _text), ("group", _text))
_MESSAGE = (("topic", _text), ("msg_id", _text), ("tags", _text), ("keys", _text))

_LAYOUTS = {
    "Pub": _Layout(
        Pub,
        13,
        (
            *_WHO,
            *_MESSAGE,
            ("store_host", _text),
            ("body_bytes", _long),
            ("cost_ms", _long),
            ("msg_type", _long),
            ("offset_msg_id", _text),
            ("success", _flag),
            ("client_host", _text),
        ),
    ),
    "SubBefore": _Layout(
        SubBefore,
        7,
        (
            *_WHO,
            ("request_id", _text),
            ("msg_id", _text),
            ("retry_times", _long),
            ("keys", _text),
        ),
    ),
    "SubAfter": _Layout(
        SubAfter,
        5,
        (
            ("request_id", _text),
            ("msg_id", _text),
            ("cost_ms", _long),
            ("success", _flag),
            ("keys", _text),
            ("context_code", _optional_long),
            ("timestamp_ms", _optional_long),
            ("group", _text),
        ),
    ),
    "EndTransaction": _Layout(
        EndTransaction,
        13,
        (
            *_WHO,
            *_MESSAGE,
            ("store_host", _text),
            ("msg_type", _long),
            ("transaction_id", _text),
            ("transaction_state", _text),
            ("from_transaction_check", _flag),
        ),
    ),
    "Recall": _Layout(Recall, 7, (*_WHO, ("topic", _text), ("msg_id", _text), ("success", _flag))),
}
