"""Read the columns in the head of a stored record, without decoding the whole record.

A decoded message has properties and hosts; creating the object costs more than the pull itself.
Records with IPv6 hosts or a long topic take the slow path through `core_broker.message.record`,
which also raises the errors for malformed records. `spark_jobs.sources.batch_builders` makes Arrow
batches of the heads and bodies.
"""

from collections.abc import Iterator
from operator import itemgetter
from struct import error
from typing import Any, Final

from core_broker.errors import ProtocolError
from core_broker.message import record_layout
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.message.record_layout import RECORD_BYTES_MIN, RECORD_MAGIC_V1, V6_HOSTS
from spark_jobs.sources.columns import COLUMNS, decompressed

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

#: Columns with a field of the head, as in `MessageExt` up to _ATTRIBUTES.
_HEAD_FIELDS: Final = frozenset(_NUMBERS).intersection(COLUMNS)
_ATTRIBUTES: Final = {"physical_offset": "offset_physical"}
#: Columns of the fast path.
HEAD_COLUMNS: Final = frozenset({*_HEAD_FIELDS, "topic", "broker_name", "body"})

#: Head, and decompressed body, of a record. `packed` makes the head of the fields.
HeadAndBody = tuple[bytes, bytes]


def heads_and_bodies(buffer: bytes) -> Iterator[HeadAndBody]:
    """The records in `buffer`, one after another. Raises ProtocolError at a malformed record."""
    at, length = 0, len(buffer)
    while at < length:
        try:
            head = HEAD.unpack_from(buffer, at)
        except error as fault:
            raise ProtocolError(f"broken record at {at}: {fault}") from None
        size, body_at = head[STORE_SIZE], at + HEAD.size
        body_end = body_at + head[BODY_BYTES]
        if head[MAGIC] != RECORD_MAGIC_V1 or head[SYS_FLAG] & V6_HOSTS:
            message = decode_record(buffer, at)
            head, body, size = head_of_message(message), message.body, message.store_size
        elif size < RECORD_BYTES_MIN or at + size > length or body_end > at + size:
            raise ProtocolError(f"a record of {size} bytes at {at} does not fit")
        else:
            body = buffer[body_at:body_end]
        yield packed(head, body)
        at += size


def packed(head: tuple[Any, ...], body: bytes) -> HeadAndBody:
    """The head in the layout of `HEAD`, with empty hosts, and the decompressed body."""
    body = decompressed(body, head[SYS_FLAG])
    return _pack_hostless(*_numbers_of(head), len(body)), body


def head_of_message(message: MessageExt) -> tuple[Any, ...]:
    """The head of a decoded record with IPv6 hosts or a long topic, in the layout of `HEAD`."""
    head = [0] * _FIELD_COUNT
    for name in _HEAD_FIELDS:
        head[record_layout.HEAD.index(name)] = getattr(message, _ATTRIBUTES.get(name, name))
    return tuple(head)
