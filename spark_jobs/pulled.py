"""What pulls bring, gathered and turned into Arrow batches.

A pull's body is stored records one after the other. For a read of head columns only (see
`spark_jobs.records`) the heads are cut out and read all at once, and Arrow takes the bodies out of
the bytes as they came; there is no object per message. Records that are compressed, have IPv6 hosts
or a long topic go record by record.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from core_broker.client.subscription import matches_tags
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from core_broker.message.record import RECORD_BYTES_MIN, RECORD_MAGIC_V1, decode_records
from core_broker.remoting.bodies import SubscriptionData
from spark_jobs.columns import COLUMNS, arrow_type, to_arrow
from spark_jobs.records import HEAD, V6_HOSTS, HeadRows

if TYPE_CHECKING:
    import numpy
    from pyarrow import Array, RecordBatch

_HEAD_BYTES: Final = HEAD.size
_SIZE_BYTES: Final = 4
_ODD_FLAGS: Final = V6_HOSTS | sysflag.COMPRESSED
_MICROS: Final = frozenset({"born_timestamp", "store_timestamp"})


class Rows(Protocol):
    """What both ways gather: rows that become a record batch."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records that follow one another in `buffer`, those with queue offsets from
        `start` up to and without `end`. Raises ProtocolError at a broken one."""

    def extend(self, others: Iterable[Self]) -> None:
        """Add the rows of others behind these."""

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`; topic and broker are those of the read."""


class PulledRows:
    """Rows of head columns."""

    def __init__(self) -> None:
        self._pulled: list[tuple[bytes, int, int]] = []
        self._heads: list[bytes] = []
        self._counts: list[int] = []
        """How many heads each pull has."""
        self._is_odd = False

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records of a pull; what is wrong with broken ones is told by `to_arrow`."""
        self._pulled.append((buffer, start, end))
        heads, at, before, length = self._heads, 0, len(self._heads), len(buffer)
        while at < length:
            head = buffer[at : at + _HEAD_BYTES]
            size = int.from_bytes(head[:_SIZE_BYTES])
            at += size
            if size < RECORD_BYTES_MIN or at > length:
                self._is_odd = True
                return
            heads.append(head)
        self._counts.append(len(heads) - before)

    def extend(self, others: Iterable["PulledRows"]) -> None:
        """Add the rows of others behind these."""
        for each in others:
            self._pulled += each._pulled
            self._heads += each._heads
            self._counts += each._counts
            self._is_odd = self._is_odd or each._is_odd

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, all of them in HEAD_COLUMNS. Raises
        ProtocolError at a broken record."""
        import numpy
        import pyarrow

        heads = numpy.frombuffer(b"".join(self._heads), _head_type())
        if self._is_odd or _has_odd(heads):
            rows = HeadRows()
            for buffer, start, end in self._pulled:
                rows.add(buffer, start, end)
            return rows.to_arrow(names, topic, broker_name)
        wanted = self._wanted(heads)
        heads = heads[wanted]
        arrays = []
        for name in names:
            if name == "body":
                arrays.append(self._bodies(wanted))
                continue
            kind = arrow_type(COLUMNS[name])
            if name in {"topic", "broker_name"}:
                text = topic if name == "topic" else broker_name
                arrays.append(pyarrow.repeat(pyarrow.scalar(text, kind), len(heads)))
            else:
                numbers = heads[name].astype(numpy.int64) * (1000 if name in _MICROS else 1)
                arrays.append(pyarrow.array(numbers).cast(kind))
        return pyarrow.RecordBatch.from_arrays(arrays, list(names))

    def _wanted(self, heads: "numpy.ndarray[Any, Any]") -> "numpy.ndarray[Any, Any]":
        """Which records, by their places, have offsets that were asked for."""
        import numpy

        bounds = numpy.array([(start, end) for _, start, end in self._pulled] or [(0, 0)])
        starts, ends = numpy.repeat(bounds, self._counts or [0], axis=0).T
        offsets = heads["queue_offset"]
        return numpy.flatnonzero((starts <= offsets) & (offsets < ends))

    def _bodies(self, wanted: "numpy.ndarray[Any, Any]") -> "Array[Any]":
        """The bodies: every second stretch of the bytes as they came, from where a body begins to
        where it ends, and on to where the next one begins."""
        import numpy
        import pyarrow

        heads = numpy.frombuffer(b"".join(self._heads), _head_type())
        ends_of_records = numpy.cumsum(heads["store_size"].astype(numpy.int64))
        begins = ends_of_records - heads["store_size"] + _HEAD_BYTES
        cuts = numpy.stack((begins, begins + heads["body_bytes"]), axis=1).reshape(-1)
        data = pyarrow.py_buffer(b"".join([buffer for buffer, _, _ in self._pulled]))
        # Large: what was pulled may have more bytes than a batch may, and the cast tells.
        stretches = pyarrow.Array.from_buffers(
            pyarrow.large_binary(), max(0, len(cuts) - 1), [None, pyarrow.py_buffer(cuts), data]
        )
        return stretches.take(pyarrow.array(wanted * 2)).cast(pyarrow.binary())


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


def _has_odd(heads: "numpy.ndarray[Any, Any]") -> bool:
    """Whether a record must be looked at by itself."""
    room = heads["store_size"].astype("i8") - _HEAD_BYTES
    odd = (
        (heads["magic"] != RECORD_MAGIC_V1)
        | (heads["sys_flag"] & _ODD_FLAGS != 0)
        | (heads["body_bytes"] > room)
    )
    return bool(odd.any())


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

    def extend(self, others: Iterable["MessageRows"]) -> None:
        """Add the rows of others behind these."""
        for each in others:
            self._messages += each._messages

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`."""
        for message in self._messages:
            message.broker_name = broker_name
        return to_arrow(self._messages, names)
