"""Trace events as Arrow columns, from the bodies of trace messages.

The rules are in `trace.scan`, which the codec shares. numpy and Arrow build the columns of
`trace.tables.EVENTS` without an object per record.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from trace import scan
from trace.codec import broken_text
from trace.tables import EVENTS, Table

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from pyarrow import Array, DataType, RecordBatch, Schema

BROKEN: Final = "Broken"
#: Maximum difference between a client's timestamp and the store time, ms. Beyond the limit the
#: client's clock counts as wrong, and the store time is used.
CLOCK_SKEW_MAX_MS: Final = 24 * 3600 * 1000
#: Columns of a batch of messages.
MESSAGE_COLUMNS: Final = ("broker_name", "queue_id", "queue_offset", "store_timestamp", "body")


def decode_events(messages: "RecordBatch") -> "RecordBatch":
    """One row per trace record in `messages`, in order, with the columns of EVENTS.

    `messages` has MESSAGE_COLUMNS; the bodies may hold any bytes. `event_ms` is the client's
    timestamp, or the store time when the client's timestamp is absent or implausible. A record
    that cannot be decoded has the kind Broken, its text in `raw`, and null values.
    """
    import numpy
    import pyarrow

    offsets, data = _text(messages.column("body"))
    terminators, separators = (int(numpy.count_nonzero(data == each)) for each in (2, 1))
    records_max = scan.records_max(terminators, separators, len(messages))
    heads = numpy.empty((records_max, scan.HEADS), numpy.int32)
    spans = numpy.empty((records_max, scan.SPANS), numpy.int32)
    numbers = numpy.empty((records_max, scan.NUMBERS_WIDTH), numpy.int64)
    text = data.data
    count = scan.scan_bodies(text, _flat(offsets), _flat(heads), _flat(spans), _flat(numbers))
    heads, spans, numbers = heads[:count], spans[:count], numbers[:count]

    message, kind = pyarrow.array(heads[:, 0]), heads[:, 2]
    is_broken = kind == scan.BROKEN
    stored_ms = messages.column("store_timestamp").cast(pyarrow.int64()).to_numpy() // 1000
    stored_ms = stored_ms[heads[:, 0]]
    bits = numpy.where(is_broken, 0, heads[:, 3])
    columns: dict[str, Any] = {
        "broker": messages.column("broker_name").take(message),
        "queue_id": messages.column("queue_id").take(message),
        "queue_offset": messages.column("queue_offset").take(message),
        "record_index": heads[:, 1],
        "stored_ms": stored_ms,
        "kind": pyarrow.DictionaryArray.from_arrays(kind, [*scan.KINDS, BROKEN]),
        "raw": _raw(text, numbers, numpy.flatnonzero(is_broken), count),
    }
    for place, name in enumerate(scan.TEXTS):
        column = "group_name" if name == "group" else name
        columns[column] = _texts(text, spans, place)
    for place, name in enumerate(scan.NUMBERS):
        is_null = bits & scan.NUMBER_BIT << place == 0
        columns[name] = pyarrow.array(numpy.ascontiguousarray(numbers[:, place]), mask=is_null)
        if name == "timestamp_ms":
            skew_ms = numbers[:, place].astype(float) - stored_ms
            is_wrong = is_null | (abs(skew_ms) > CLOCK_SKEW_MAX_MS)
            columns["event_ms"] = numpy.where(is_wrong, stored_ms, numbers[:, place])
    for place, (name, fields) in enumerate(scan.FLAGS.items()):
        lacks = numpy.array([field == 0 for field in fields] + [True])[kind]
        columns[name] = pyarrow.array(bits & scan.FLAG_BIT << place != 0, mask=lacks)
    arrays = [_as(columns[field.name], field.type) for field in arrow_schema(EVENTS)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=arrow_schema(EVENTS))


@cache
def arrow_schema(table: Table) -> "Schema":
    """The columns of a table in Arrow's types."""
    import pyarrow

    types = {
        "string": pyarrow.string(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "double": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "array<string>": pyarrow.list_(pyarrow.string()),
    }
    return pyarrow.schema([(column.name, types[column.type]) for column in table.columns])


def _text(bodies: "Array[Any]") -> "tuple[NDArray[numpy.int32], NDArray[numpy.uint8]]":
    """The begin of each body in the text of all bodies; invalid UTF-8 bytes become U+FFFD.

    The last number is the length of the text.
    """
    import numpy
    import pyarrow

    try:
        bodies.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        valid = [(body or b"").decode("utf-8", "replace") for body in bodies.to_pylist()]
        bodies = pyarrow.array(valid, pyarrow.string()).cast(pyarrow.binary())
    _, ends, data = bodies.buffers()
    offsets = numpy.frombuffer(ends, numpy.int32)[bodies.offset : bodies.offset + len(bodies) + 1]
    first, end = offsets[[0, -1]] if len(offsets) else (0, 0)
    text = numpy.frombuffer(data or b"", numpy.uint8)[first:end]
    return offsets - first, text


def _texts(data: scan.View, spans: "NDArray[numpy.int32]", place: int) -> "Array[Any]":
    """The texts at `place`, null where the kind lacks the value."""
    import numpy
    import pyarrow

    begins, ends = spans[:, 2 * place], spans[:, 2 * place + 1]
    is_present = begins >= 0
    present = int(is_present.sum())
    if not present:
        return pyarrow.nulls(len(spans), pyarrow.string())
    offsets = numpy.empty(len(spans) + 1, numpy.int32)
    texts = numpy.empty(int((ends - begins).sum()), numpy.uint8)
    scan.copy_texts(data, _flat(spans), place, len(spans), _flat(offsets), _flat(texts))
    valid = None if present == len(spans) else pyarrow.array(is_present).buffers()[1]
    buffers = [valid, pyarrow.py_buffer(offsets), pyarrow.py_buffer(texts)]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(spans), buffers)


def _raw(
    data: scan.View, numbers: "NDArray[numpy.int64]", broken: "NDArray[numpy.intp]", count: int
) -> "Array[Any]":
    """The texts of the broken records; null for all other records."""
    import pyarrow

    if not len(broken):
        return pyarrow.nulls(count, pyarrow.string())
    texts: list[str | None] = [None] * count
    for row in broken.tolist():
        texts[row] = broken_text(data, numbers[row])
    return pyarrow.array(texts, pyarrow.string())


def _flat(values: "NDArray[Any]") -> "memoryview[int]":
    return values.reshape(-1).data


def _as(values: "Array[Any] | NDArray[Any]", kind: "DataType") -> "Array[Any]":
    import numpy
    import pyarrow

    if isinstance(values, numpy.ndarray):
        values = pyarrow.array(numpy.ascontiguousarray(values))
    return values if values.type == kind else values.cast(kind)
