"""Stored records into columns, fast: what a narrow read needs stands in the head of a record.

The general way makes an object per message with its properties and hosts, which costs more than
the pull itself. In HeadRows one unpack gives the numbers of a record and one slice its
body. Records with IPv6 hosts or a long topic go by way of `core_broker.message.record`, which also
says what is wrong with broken ones; a test compares the two.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt
from core_broker.message.record import RECORD_BYTES_MIN, RECORD_MAGIC_V1, decode_record
from spark_jobs.columns import COLUMNS, arrow_type

if TYPE_CHECKING:
    from pyarrow import RecordBatch

# Size, magic, body checksum, queue, flag, queue offset, position, system flag, born at and where,
# stored at and where, reconsume times, prepared transaction, body length.
HEAD: Final = Struct(">IIIiiqqiq4siq4siiqI")
V6_HOSTS: Final = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6

_NO_HOST: Final = bytes(4)

# Where a column stands in the head, and by how much it is multiplied: timestamps are microseconds.
_PLACES: Final = {
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
#: A read of these columns alone is a fast one.
HEAD_COLUMNS: Final = frozenset({*_PLACES, "topic", "broker_name", "body"})


class HeadRows:
    """Rows of the fast columns, gathered record by record or from buffers full of them."""

    def __init__(self) -> None:
        self._heads: list[tuple[Any, ...]] = []
        self._bodies: list[bytes] = []
        self._topics: list[str] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._heads)

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records that follow one another in `buffer`, those with queue offsets from
        `start` up to and without `end`. Raises ProtocolError at a broken one."""
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
                head, body, size = general_head(message), message.body, message.store_size
            elif size < RECORD_BYTES_MIN or at + size > length or body_end > at + size:
                raise ProtocolError(f"a record of {size} bytes at {at} does not fit")
            else:
                body = buffer[body_at:body_end]
            if start <= head[5] < end:
                heads.append(head)
                bodies.append(unpacked(body, sys_flag) if sys_flag & sysflag.COMPRESSED else body)
                self.bytes += size
            at += size

    def take(self, head: tuple[Any, ...], body: bytes, topic: str) -> None:
        """Add one record whose topic differs from others'."""
        self._heads.append(head)
        self._bodies.append(unpacked(body, head[7]) if head[7] & sysflag.COMPRESSED else body)
        self._topics.append(topic)
        self.bytes += head[0]

    def parts(self) -> tuple[list[bytes], list[bytes]]:
        """The heads as usual records have them, without hosts, and the bodies."""
        heads = [
            HEAD.pack(*head[:9], _NO_HOST, 0, head[11], _NO_HOST, 0, *head[14:16], len(body))
            for head, body in zip(self._heads, self._bodies, strict=True)
        ]
        return heads, self._bodies

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, all of them in HEAD_COLUMNS. `topic` is that of
        records that were not taken with their own."""
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
                place, times = _PLACES[name]
                numbers = by_place[place]
                values = numbers if times == 1 else [number * times for number in numbers]
            arrays.append(pyarrow.array(values, arrow_type(COLUMNS[name])))
        return pyarrow.RecordBatch.from_arrays(arrays, list(names))


def unpacked(body: bytes, sys_flag: int) -> bytes:
    """The body as the application sent it; as stored when it does not unpack."""
    try:
        return decompress(body, sys_flag)
    except (ProtocolError, ClientError):
        return body


def general_head(message: MessageExt) -> tuple[Any, ...]:
    """The head of a record with wide hosts or a long topic, with the places of `HEAD`."""
    head = [0] * 17
    for name, (place, _) in _PLACES.items():
        head[place] = getattr(message, _ATTRIBUTES.get(name, name))
    return tuple(head)
