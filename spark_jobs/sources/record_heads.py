"""Read the columns in the head of a stored record, without decoding the whole record.

A decoded message has properties and hosts; creating the object costs more than the pull itself.
HeadBatchBuilder unpacks the numbers of a record in one call and copies the body in one slice.
Records with IPv6 hosts or a long topic take the slow path through `core_broker.message.record`,
which also raises the errors for malformed records; a test compares both paths.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.message.record_layout import RECORD_BYTES_MIN, RECORD_MAGIC_V1
from spark_jobs.sources.columns import COLUMNS, arrow_type

if TYPE_CHECKING:
    from pyarrow import RecordBatch

# Record size, magic, body checksum, queue, flag, queue offset, position, system flag, born
# timestamp and host, store timestamp and host, reconsume times, prepared transaction, body length.
HEAD: Final = Struct(">IIIiiqqiq4siq4siiqI")
V6_HOSTS: Final = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6

_NO_HOST: Final = bytes(4)

# Column: field index in the head, and a factor (timestamps become microseconds).
_HEAD_FIELDS: Final = {
    "queue_id": (3, 1),
    "queue_offset": (5, 1),
    "born_timestamp": (8, 1000),
    "store_timestamp": (11, 1000),
    "reconsume_times": (14, 1),
    "flag": (4, 1),
    "sys_flag": (7, 1),
    "store_size": (0, 1),
    "physical_offset": (6, 1),
}
_ATTRIBUTES: Final = {"physical_offset": "offset_physical"}
#: Columns of the fast path.
HEAD_COLUMNS: Final = frozenset({*_HEAD_FIELDS, "topic", "broker_name", "body"})


class HeadBatchBuilder:
    """Builds batches of head columns record by record."""

    def __init__(self) -> None:
        self._heads: list[tuple[Any, ...]] = []
        self._bodies: list[bytes] = []
        self._topics: list[str] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._heads)

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records in `buffer` with queue offsets from `start` up to and without `end`.

        Raises ProtocolError at a malformed record.
        """
        unpack, heads, bodies = HEAD.unpack_from, self._heads, self._bodies
        at, length = 0, len(buffer)
        while at < length:
            try:
                head = unpack(buffer, at)
            except error as fault:
                raise ProtocolError(f"broken record at {at}: {fault}") from None
            size, sys_flag, body_at = head[0], head[7], at + HEAD.size
            body_end = body_at + head[16]
            if head[1] != RECORD_MAGIC_V1 or sys_flag & V6_HOSTS:
                message = decode_record(buffer, at)
                head, body, size = head_of_message(message), message.body, message.store_size
            elif size < RECORD_BYTES_MIN or at + size > length or body_end > at + size:
                raise ProtocolError(f"a record of {size} bytes at {at} does not fit")
            else:
                body = buffer[body_at:body_end]
            if start <= head[5] < end:
                heads.append(head)
                bodies.append(
                    decompressed(body, sys_flag) if sys_flag & sysflag.COMPRESSED else body
                )
                self.bytes += size
            at += size

    def add_record(self, head: tuple[Any, ...], body: bytes, topic: str) -> None:
        """Add one record with its own topic."""
        self._heads.append(head)
        self._bodies.append(decompressed(body, head[7]) if head[7] & sysflag.COMPRESSED else body)
        self._topics.append(topic)
        self.bytes += head[0]

    def heads_and_bodies(self) -> tuple[list[bytes], list[bytes]]:
        """The heads in the layout of `HEAD`, with empty hosts, and the bodies."""
        heads = [
            HEAD.pack(*head[:9], _NO_HOST, 0, head[11], _NO_HOST, 0, *head[14:16], len(body))
            for head, body in zip(self._heads, self._bodies, strict=True)
        ]
        return heads, self._bodies

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, which must be in HEAD_COLUMNS.

        `topic` applies to records added without a topic.
        """
        import pyarrow

        count = len(self._heads)
        by_place = list(zip(*self._heads, strict=True)) if count else [()] * 17
        given: dict[str, Sequence[Any]] = {
            "topic": self._topics or [topic] * count,
            "broker_name": [broker_name] * count,
        }
        arrays = []
        for name in names:
            if name in given:
                values = given[name]
            elif name == "body":
                values = self._bodies
            else:
                place, times = _HEAD_FIELDS[name]
                numbers = by_place[place]
                values = numbers if times == 1 else [number * times for number in numbers]
            arrays.append(pyarrow.array(values, arrow_type(COLUMNS[name])))
        return pyarrow.RecordBatch.from_arrays(arrays, list(names))


def decompressed(body: bytes, sys_flag: int) -> bytes:
    """The decompressed body; the stored body when decompression fails."""
    try:
        return decompress(body, sys_flag)
    except (ProtocolError, ClientError):
        return body


def head_of_message(message: MessageExt) -> tuple[Any, ...]:
    """The head of a decoded record with IPv6 hosts or a long topic, in the layout of `HEAD`."""
    head = [0] * 17
    for name, (place, _) in _HEAD_FIELDS.items():
        head[place] = getattr(message, _ATTRIBUTES.get(name, name))
    return tuple(head)
