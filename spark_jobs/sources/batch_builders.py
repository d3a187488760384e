"""Build Arrow record batches from pulled records.

The body of a pull result is a sequence of stored records. When a read needs head columns only (see
`spark_jobs.sources.record_heads`), the builder copies heads and bodies out of each result on
arrival, while the bytes are still in the CPU caches; the compiled kernel does the copying where
present. numpy and Arrow then convert the copies without an object per message. Pulls with
compressed records, IPv6 hosts or long topics are converted record by record.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from core_broker.client.subscription import matches_tags
from core_broker.message import record_layout, sysflag
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_records
from core_broker.message.record_layout import V6_HOSTS
from core_broker.remoting.bodies import SubscriptionData
from spark_jobs.sources.columns import COLUMNS, arrow_type, to_arrow
from spark_jobs.sources.record_heads import HeadAndBody, heads_and_bodies
from spark_jobs.sources.record_split import HEAD_BYTES, heads_bytes_max

try:
    from core_broker.kernel.record_split import split_records
except ImportError:
    from spark_jobs.sources.record_split import split_records

if TYPE_CHECKING:
    import numpy
    from pyarrow import Array, Buffer, DataType, RecordBatch

_SLOW_PATH_FLAGS: Final = V6_HOSTS | sysflag.COMPRESSED
HEADS_BYTES: Final = 256 * 1024
#: Initial capacity for the bodies of a batch, bytes.
BODIES_BYTES: Final = 2 * 1024 * 1024 + 256 * 1024
#: Maximum size of Arrow's binary columns, bytes.
_BATCH_BYTES_MAX: Final = 2**31 - 1
_MICROS: Final = frozenset({"born_timestamp", "store_timestamp"})


class BatchBuilder(Protocol):
    """Collects records and converts them to a record batch."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records in `buffer` with queue offsets from `start` up to and without `end`.

        Raises ProtocolError at a malformed record.
        """

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, for records of one topic and broker."""


class GrowableBuffer:
    """A growable buffer in memory of Arrow's pool.

    The allocator returns a freed buffer of this size to the operating system at once, and the pages
    of the next buffer are zeroed again.
    """

    def __init__(self, count: int) -> None:
        #: Number of bytes written. A caller that writes into `reserve` advances `end`.
        self.end = 0
        self._take(count)

    def reserve(self, count: int) -> memoryview:
        """The free space behind `end`, grown to at least `count` bytes."""
        if self.end + count > len(self._view):
            before = self._view
            self._take(max(2 * len(before), self.end + count))
            self._view[: self.end] = before[: self.end]
        return self._view[self.end :]

    def append(self, data: bytes) -> None:
        """Append `data`."""
        self.reserve(len(data))[: len(data)] = data
        self.end += len(data)

    def buffer(self) -> "Buffer":
        """The written bytes as an Arrow buffer. The builder must not append afterwards."""
        return self._buffer.slice(0, self.end)

    def _take(self, count: int) -> None:
        import pyarrow

        self._buffer = pyarrow.allocate_buffer(count)
        self._view = memoryview(self._buffer).cast("B")


class VectorBatchBuilder:
    """Builds batches of head columns with numpy and Arrow, without an object per record."""

    def __init__(self) -> None:
        self._heads = GrowableBuffer(HEADS_BYTES)
        self._bodies = GrowableBuffer(BODIES_BYTES)
        #: For each pull: requested start, requested end, number of records.
        self._pulls: list[tuple[int, int, int]] = []
        #: Topics of the records of `add_record`.
        self._topics: list[str] = []

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records of a pull. Raises ProtocolError at a malformed record."""
        heads, bodies, length = self._heads, self._bodies, len(buffer)
        count, body_bytes = split_records(
            buffer, _SLOW_PATH_FLAGS, heads.reserve(heads_bytes_max(length)), bodies.reserve(length)
        )
        if count < 0:
            records = list(heads_and_bodies(buffer))  # all or none: the buffer may be malformed
            count = len(records)
            for record in records:
                self._append(record)
        else:
            heads.end += count * HEAD_BYTES
            bodies.end += body_bytes
        self._pulls.append((start, end, count))

    def add_record(self, record: HeadAndBody, topic: str) -> None:
        """Add one record with its own topic; a batch has such records or pulls, not both."""
        self._append(record)
        self._topics.append(topic)

    def _append(self, record: HeadAndBody) -> None:
        head, body = record
        self._heads.append(head)
        self._bodies.append(body)

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, which must be in HEAD_COLUMNS.

        `topic` applies to the records of pulls.
        """
        import numpy
        import pyarrow

        heads = numpy.frombuffer(self._heads.buffer(), _head_type())
        constants = {"topic": topic, "broker_name": broker_name}
        arrays = []
        for name in names:
            kind = _kind(name)
            if name == "body":
                arrays.append(_column(self._bodies, heads["body_bytes"]))
            elif name == "topic" and self._topics:
                arrays.append(pyarrow.array(self._topics, kind))
            elif name in constants:
                arrays.append(_repeated(constants[name], len(heads)))
            elif name in _MICROS:
                arrays.append(pyarrow.array(heads[name].astype(numpy.int64) * 1000).view(kind))
            else:
                arrays.append(pyarrow.array(heads[name].astype(kind.to_pandas_dtype())))
        batch = pyarrow.RecordBatch.from_arrays(arrays, list(names))
        requested = self._requested_mask(heads["queue_offset"].astype(numpy.int64))
        return batch if requested is None else batch.filter(pyarrow.array(requested))

    def _requested_mask(
        self, offsets: "numpy.ndarray[Any, Any]"
    ) -> "numpy.ndarray[Any, numpy.dtype[numpy.bool]] | None":
        """A mask of the records with requested offsets; None when all records are requested."""
        import numpy

        if not self._pulls:
            return None
        starts, ends, counts = numpy.array(self._pulls).T
        requested = numpy.repeat(starts, counts) <= offsets
        requested &= offsets < numpy.repeat(ends, counts)
        return None if requested.all() else requested


def _column(bodies: GrowableBuffer, lengths: "numpy.ndarray[Any, Any]") -> "Array[Any]":
    """The bodies as a column."""
    import numpy
    import pyarrow

    ends = numpy.zeros(len(lengths) + 1, numpy.int64)
    numpy.cumsum(lengths, out=ends[1:])
    if ends[-1] <= _BATCH_BYTES_MAX:
        kind, ends = pyarrow.binary(), ends.astype(numpy.int32)
    else:
        kind = pyarrow.large_binary()
    data = [None, pyarrow.py_buffer(ends), bodies.buffer()]
    column = pyarrow.Array.from_buffers(kind, len(lengths), data)
    return column.cast(pyarrow.binary())  # the cast raises for a column over the limit


def _repeated(text: str, count: int) -> "Array[Any]":
    """A column with the same text in every row."""
    return _repeated_cached(text, 1 << max(0, count - 1).bit_length())[:count]


@lru_cache(maxsize=16)
def _repeated_cached(text: str, count: int) -> "Array[Any]":
    import pyarrow

    return pyarrow.repeat(text, count)


@cache
def _kind(name: str) -> "DataType":
    return arrow_type(COLUMNS[name])


@cache
def _head_type() -> "numpy.dtype[Any]":
    """The numpy type of a record head, in the layout of `HEAD`."""
    import numpy

    return numpy.dtype(record_layout.HEAD.numpy_fields())


class MessageBatchBuilder:
    """Builds batches of any columns from decoded messages."""

    def __init__(self, subscription: SubscriptionData) -> None:
        self._subscription = subscription
        self._messages: list[MessageExt] = []

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records in `buffer` with requested offsets and a matching tag.

        Offsets are from `start` up to and without `end`. The broker compares only hash codes of
        tags, so the builder compares the tags themselves.
        """
        self._messages += [
            message
            for message in decode_records(buffer)
            if start <= message.queue_offset < end
            and matches_tags(self._subscription, message.tags)
        ]

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`."""
        for message in self._messages:
            message.broker_name = broker_name
        return to_arrow(self._messages, names)
