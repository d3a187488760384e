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

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from trace import scan

FIELD_SEPARATOR: Final = "\x01"
RECORD_TERMINATOR: Final = "\x02"
#: Maximum broken records kept of one body; the count includes all broken records.
BROKEN_KEPT_MAX: Final = 64
BROKEN_TEXT_CHARS_MAX: Final = 512
BROKEN_FIELD_CHARS_MAX: Final = 40
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
    data = text.encode("utf-8", "replace")
    records_max = scan.records_max(data.count(2), data.count(1), bodies=1)
    heads, spans, numbers = (
        memoryview(array(code, bytes(array(code).itemsize * width * records_max)))
        for code, width in (("i", scan.HEADS), ("i", scan.SPANS), ("q", scan.NUMBERS_WIDTH))
    )
    count = scan.scan_bodies(data, memoryview(array("i", [0, len(data)])), heads, spans, numbers)
    records: list[TraceRecord] = []
    broken: list[BrokenRecord] = []
    for record in range(count):
        kind, bits = heads[scan.HEADS * record + 2 : scan.HEADS * (record + 1)]
        places = spans[scan.SPANS * record : scan.SPANS * (record + 1)]
        values = numbers[scan.NUMBERS_WIDTH * record : scan.NUMBERS_WIDTH * (record + 1)]
        if kind != scan.BROKEN:
            records.append(_record(data, kind, bits, places, values))
        elif len(broken) < BROKEN_KEPT_MAX:
            broken.append(BrokenRecord(broken_text(data, values), _reason(data, bits, values)))
    return DecodedTrace(records, broken, count - len(records))


def broken_text(data: scan.View, numbers: Sequence[int]) -> str:
    """The text of a broken record in `data`, truncated; `numbers` come from the scan."""
    return bytes(data[numbers[1] : numbers[2]]).decode()[:BROKEN_TEXT_CHARS_MAX]


def encode_trace(records: Iterable[TraceRecord]) -> bytes:
    """Encode records as Java 4.9.8 does. Separators inside a value become blanks."""
    return "".join(map(encode_record, records)).encode("utf-8", "replace")


def encode_record(record: TraceRecord) -> str:
    """One record with its terminator, for writers that fill a message up to its size limit."""
    kind = type(record).__name__
    values = [getattr(record, name) for name in record.__struct_fields__]
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


def _record(
    data: bytes, kind: int, bits: int, spans: Sequence[int], numbers: Sequence[int]
) -> TraceRecord:
    make, texts, values, flags = _PARTS[kind]
    fields: dict[str, str | int | bool] = {
        name: data[spans[2 * place] : spans[2 * place + 1]].decode() for name, place in texts
    }
    fields |= {name: numbers[at] for name, at in values if bits & scan.NUMBER_BIT << at}
    fields |= {name: bits & scan.FLAG_BIT << at != 0 for name, at in flags}
    return make(**fields)


def _reason(data: bytes, reason: int, numbers: Sequence[int]) -> str:
    field = data[numbers[3] : numbers[4]].decode()[:BROKEN_FIELD_CHARS_MAX]
    if reason == scan.UNKNOWN_KIND:
        return f"unknown kind of record {field!r}"
    if reason == scan.NOT_A_NUMBER:
        return f"{field!r} is not a 64-bit number"
    kind = data[numbers[1] : numbers[2]].decode().partition(FIELD_SEPARATOR)[0]
    return f"{kind} has only {numbers[0]} fields"


def _field_text(value: str | int | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value.translate(_UNPRINTED)
    return "null" if value is None else str(int(value))


def _present(fields: Mapping[str, tuple[int, ...]], kind: int) -> list[tuple[str, int]]:
    """The values of a kind: attribute, place in the arrays of the scan."""
    return [(name, place) for place, (name, at) in enumerate(fields.items()) if at[kind]]


_TYPES: Final[tuple[Callable[..., TraceRecord], ...]] = (
    Pub,
    SubBefore,
    SubAfter,
    EndTransaction,
    Recall,
)
_PARTS: Final = [
    (make, _present(scan.TEXTS, kind), _present(scan.NUMBERS, kind), _present(scan.FLAGS, kind))
    for kind, make in enumerate(_TYPES)
]
