"""Read the columns in the head of a stored record, without decoding the whole record.

A decoded message has properties and hosts; creating the object costs more than the pull itself.
HeadBatchBuilder unpacks the numbers of a record in one call and copies the body in one slice.
Records with IPv6 hosts or a long topic take the slow path through `core_broker.message.record`,
which also raises the errors for malformed records; a test compares both paths.
"""

from collections.abc import Sequence
from operator import itemgetter
from struct import error
from typing import TYPE_CHECKING, Any, Final

from core_broker.errors import ProtocolError
from core_broker.message import record_layout
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.message.record_layout import RECORD_BYTES_MIN, RECORD_MAGIC_V1, V6_HOSTS
from spark_jobs.sources.columns import COLUMNS, arrow_type, decompressed

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: The head of a record with IPv4 hosts.
HEAD: Final = record_layout.HEAD.struct
#: Indexes of fields in an unpacked head.
STORE_SIZE, MAGIC, BODY_CRC, QUEUE_OFFSET, PHYSICAL_OFFSET = map(
    record_layout.HEAD.index,
    ("store_size", "magic", "body_crc", "queue_offset", "physical_offset"),
)
SYS_FLAG, BORN_TIMESTAMP, STORE_TIMESTAMP, BODY_BYTES = map(
    record_layout.HEAD.index, ("sys_flag", "born_timestamp", "store_timestamp", "body_bytes")
)

_FIELD_COUNT: Final = len(record_layout.HEAD.fields)
_HOSTS: Final = frozenset({"born_address", "born_port", "store_address", "store_port"})
_NUMBERS: Final = tuple(
    field.name for field in record_layout.HEAD.fields[:-1] if field.name not in _HOSTS
)
_numbers_of: Final = itemgetter(*map(record_layout.HEAD.index, _NUMBERS))
#: Packs a head with empty hosts.
_pack_hostless: Final = record_layout.HEAD.select(*_NUMBERS, "body_bytes").pack

# Column: field index in the head, and a factor (timestamps become microseconds).
_HEAD_FIELDS: Final = {
    **{
        name: (record_layout.HEAD.index(name), 1)
        for name in ("queue_id", "reconsume_times", "flag")
    },
    "queue_offset": (QUEUE_OFFSET, 1),
    "born_timestamp": (BORN_TIMESTAMP, 1000),
    "store_timestamp": (STORE_TIMESTAMP, 1000),
    "sys_flag": (SYS_FLAG, 1),
    "store_size": (STORE_SIZE, 1),
    "physical_offset": (PHYSICAL_OFFSET, 1),
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
            size, sys_flag, body_at = head[STORE_SIZE], head[SYS_FLAG], at + HEAD.size
            body_end = body_at + head[BODY_BYTES]
            if head[MAGIC] != RECORD_MAGIC_V1 or sys_flag & V6_HOSTS:
                message = decode_record(buffer, at)
                head, body, size = head_of_message(message), message.body, message.store_size
            elif size < RECORD_BYTES_MIN or at + size > length or body_end > at + size:
                raise ProtocolError(f"a record of {size} bytes at {at} does not fit")
            else:
                body = buffer[body_at:body_end]
            if start <= head[QUEUE_OFFSET] < end:
                heads.append(head)
                bodies.append(decompressed(body, sys_flag))
            at += size

    def add_record(self, head: tuple[Any, ...], body: bytes, topic: str) -> None:
        """Add one record with its own topic."""
        self._heads.append(head)
        self._bodies.append(decompressed(body, head[SYS_FLAG]))
        self._topics.append(topic)

    def heads_and_bodies(self) -> tuple[list[bytes], list[bytes]]:
        """The heads in the layout of `HEAD`, with empty hosts, and the bodies."""
        heads = [
            _pack_hostless(*_numbers_of(head), len(body))
            for head, body in zip(self._heads, self._bodies, strict=True)
        ]
        return heads, self._bodies

    def to_arrow(self, names: Sequence[str], topic: str, broker_name: str) -> "RecordBatch":
        """A record batch with the columns `names`, which must be in HEAD_COLUMNS.

        `topic` applies to records added without a topic.
        """
        import pyarrow

        count = len(self._heads)
        by_field = list(zip(*self._heads, strict=True)) if count else [()] * _FIELD_COUNT
        constants: dict[str, Sequence[Any]] = {
            "topic": self._topics or [topic] * count,
            "broker_name": [broker_name] * count,
        }
        arrays = []
        for name in names:
            if name in constants:
                values = constants[name]
            elif name == "body":
                values = self._bodies
            else:
                index, times = _HEAD_FIELDS[name]
                numbers = by_field[index]
                values = numbers if times == 1 else [number * times for number in numbers]
            arrays.append(pyarrow.array(values, arrow_type(COLUMNS[name])))
        return pyarrow.RecordBatch.from_arrays(arrays, list(names))


def head_of_message(message: MessageExt) -> tuple[Any, ...]:
    """The head of a decoded record with IPv6 hosts or a long topic, in the layout of `HEAD`."""
    head = [0] * _FIELD_COUNT
    for name, (index, _) in _HEAD_FIELDS.items():
        head[index] = getattr(message, _ATTRIBUTES.get(name, name))
    return tuple(head)
