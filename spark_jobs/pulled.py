"""What pulls bring, gathered and turned into Arrow batches.

A pull's body is stored records one after the other. For a read of head columns only (see
`spark_jobs.records`) the heads and the bodies are cut out as soon as a pull is there and still in
the caches, by the kernel where it is compiled; numpy and Arrow read them from there, without an
object per message. Pulls with records that are compressed, have IPv6 hosts or a long topic go
record by record.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from core_broker.client.subscription import matches_tags
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_records
from core_broker.remoting.bodies import SubscriptionData
from spark_jobs.columns import COLUMNS, arrow_type, to_arrow
from spark_jobs.cuts import HEAD_BYTES, heads_room
from spark_jobs.records import V6_HOSTS, HeadRows

try:
    from core_broker.kernel.cuts import cut
except ImportError:
    from spark_jobs.cuts import cut

if TYPE_CHECKING:
    import numpy
    from pyarrow import Array, Buffer, DataType, RecordBatch

_ODD_FLAGS: Final = V6_HOSTS | sysflag.COMPRESSED
HEADS_BYTES: Final = 256 * 1024
#: What the heads and the bodies of a batch usually need.
BODIES_BYTES: Final = 2 * 1024 * 1024 + 256 * 1024
#: What Arrow's binary columns hold.
_BATCH_BYTES_MAX: Final = 2**31 - 1
_ALL_OFFSETS: Final = (-(2**63), 2**63)
_MICROS: Final = frozenset({"born_timestamp", "store_timestamp"})


class Rows(Protocol):
    """What both ways gather: rows that become a record batch."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records that follow one another in `buffer`, those with queue offsets from
        `start` up to and without `end`. Raises ProtocolError at a broken one."""

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`; topic and broker are those of the read."""


class Stretch:
    """Bytes one behind the other, in memory of Arrow's pool. The system takes a piece of this size
    back as soon as it is free, and clears the next one."""

    def __init__(self, count: int) -> None:
        self.end = 0
        """So many bytes are in it; whoever writes behind them moves it."""
        self._take(count)

    def room(self, count: int) -> memoryview:
        """Where at least `count` more bytes may be written."""
        if self.end + count > len(self._view):
            before = self._view
            self._take(max(2 * len(before), self.end + count))
            self._view[: self.end] = before[: self.end]
        return self._view[self.end :]

    def append(self, data: bytes) -> None:
        """Add some bytes."""
        self.room(len(data))[: len(data)] = data
        self.end += len(data)

    def buffer(self) -> "Buffer":
        """What is in it. Nothing may be added afterwards."""
        return self._buffer.slice(0, self.end)

    def _take(self, count: int) -> None:
        import pyarrow

        self._buffer = pyarrow.allocate_buffer(count)
        self._view = memoryview(self._buffer).cast("B")


class PulledRows:
    """Rows of head columns."""

    def __init__(self) -> None:
        self._heads = Stretch(HEADS_BYTES)
        self._bodies = Stretch(BODIES_BYTES)
        self._pulls: list[tuple[int, int, int]] = []
        """Of each pull where it was to begin and to end, and how many heads it has."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records of a pull. Raises ProtocolError at a broken one."""
        heads, bodies, length = self._heads, self._bodies, len(buffer)
        count, body_bytes = cut(
            buffer, _ODD_FLAGS, heads.room(heads_room(length)), bodies.room(length)
        )
        if count < 0:
            count = self._add_one_by_one(buffer)
        else:
            heads.end += count * HEAD_BYTES
            bodies.end += body_bytes
        self._pulls.append((start, end, count))

    def _add_one_by_one(self, buffer: bytes) -> int:
        """Add records that are not all usual; how many there are."""
        rows = HeadRows()
        rows.add(buffer, *_ALL_OFFSETS)
        heads, bodies = rows.parts()
        self._heads.append(b"".join(heads))
        self._bodies.append(b"".join(bodies))
        return len(heads)

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, all of them in HEAD_COLUMNS."""
        import numpy
        import pyarrow

        heads = numpy.frombuffer(self._heads.buffer(), _head_type())
        constants = {"topic": topic, "broker_name": broker_name}
        arrays = []
        for name in names:
            kind = _kind(name)
            if name == "body":
                arrays.append(_column(self._bodies, heads["body_bytes"]))
            elif name in constants:
                arrays.append(_repeated(constants[name], len(heads)))
            elif name in _MICROS:
                arrays.append(pyarrow.array(heads[name].astype(numpy.int64) * 1000).view(kind))
            else:
                arrays.append(pyarrow.array(heads[name].astype(kind.to_pandas_dtype())))
        batch = pyarrow.RecordBatch.from_arrays(arrays, list(names))
        wanted = self._wanted(heads["queue_offset"].astype(numpy.int64))
        return batch if wanted is None else batch.filter(pyarrow.array(wanted))

    def _wanted(
        self, offsets: "numpy.ndarray[Any, Any]"
    ) -> "numpy.ndarray[Any, numpy.dtype[numpy.bool]] | None":
        """Which records have offsets that were asked for; None: all."""
        import numpy

        starts, ends, counts = numpy.array(self._pulls or [(0, 0, 0)]).T
        wanted = numpy.repeat(starts, counts) <= offsets
        wanted &= offsets < numpy.repeat(ends, counts)
        return None if wanted.all() else wanted


def _column(bodies: Stretch, lengths: "numpy.ndarray[Any, Any]") -> "Array[Any]":
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
    return column.cast(pyarrow.binary())  # which tells of too many bytes


def _repeated(text: str, count: int) -> "Array[Any]":
    """A column with the same text in every row."""
    return _many(text, 1 << max(0, count - 1).bit_length())[:count]


@lru_cache(maxsize=16)
def _many(text: str, count: int) -> "Array[Any]":
    import pyarrow

    return pyarrow.repeat(text, count)


@cache
def _kind(name: str) -> "DataType":
    return arrow_type(COLUMNS[name])


@cache
def _head_type() -> "numpy.dtype[Any]":
    """The head of a record, as `HEAD` has it."""
    import numpy

    return numpy.dtype(
        [
            *(("store_size", ">u4"), ("magic", ">u4"), ("checksum", ">u4"), ("queue_id", ">i4")),
            *(("flag", ">i4"), ("queue_offset", ">i8"), ("physical_offset", ">i8")),
            *(("sys_flag", ">i4"), ("born_timestamp", ">i8"), ("born_host", "V8")),
            *(("store_timestamp", ">i8"), ("store_host", "V8"), ("reconsume_times", ">i4")),
            *(("prepared", ">i8"), ("body_bytes", ">u4")),
        ]
    )


class MessageRows:
    """Rows of any columns, gathered message by message."""

    def __init__(self, wanted: SubscriptionData) -> None:
        self._wanted = wanted
        self._messages: list[MessageExt] = []

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records in `buffer`, those with queue offsets from `start` up to and without
        `end` and a tag that is wanted: the broker compared hashes of tags only."""
        self._messages += [
            message
            for message in decode_records(buffer)
            if start <= message.queue_offset < end and matches_tags(self._wanted, message.tags)
        ]

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`."""
        for message in self._messages:
            message.broker_name = broker_name
        return to_arrow(self._messages, names)
