"""Framing: what stands before and between the messages of a body.

raw         the body is one message
delimited   Protobuf's writeDelimitedTo(): varint length and message, once or several times
confluent   Confluent's wire format: 0x00, four bytes schema ID (big-endian), for Protobuf the
            indexes of the message type (zigzag varints: count, then indexes; a single 0 stands for
            [0]), then the message
"""

from enum import StrEnum
from typing import Final

from console.gateway.messages.schemas.bounds import VALUES_MAX, Misfit

MAGIC: Final = 0
HEADER_BYTES: Final = 5
VARINT_BYTES_MAX: Final = 10
#: Maximum nesting of a message type within others, in a Confluent header.
INDEXES_MAX: Final = 16


class Framing(StrEnum):
    RAW = "raw"
    DELIMITED = "delimited"
    CONFLUENT = "confluent"


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a base-128 varint and the position behind it. Raises Misfit."""
    value = 0
    for count in range(VARINT_BYTES_MAX):
        if at >= len(data):
            raise Misfit("the body ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at
    raise Misfit(f"a number has more than {VARINT_BYTES_MAX} bytes")


def zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def delimited(data: bytes) -> list[bytes]:
    """Return the messages of a length-delimited body. Raises Misfit."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        if size > len(data) - at:
            raise Misfit(f"a message of {size} bytes is announced, {len(data) - at} remain")
        pieces.append(data[at : at + size])
        at += size
        if len(pieces) > VALUES_MAX:
            raise Misfit(f"more than {VALUES_MAX} messages")
    if not pieces:
        raise Misfit("the body has no message")
    return pieces


def confluent(data: bytes) -> tuple[int, bytes]:
    """Return the schema ID and the rest of a body in Confluent's wire format. Raises Misfit."""
    if len(data) < HEADER_BYTES or data[0] != MAGIC:
        raise Misfit("the body does not begin with Confluent's header (0x00 and a schema ID)")
    return int.from_bytes(data[1:HEADER_BYTES], "big"), data[HEADER_BYTES:]


def message_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the indexes of a Protobuf type and the rest of the body. Raises Misfit."""
    raw, at = varint(data, 0)
    count = zigzag(raw)
    if not 0 <= count <= INDEXES_MAX:
        raise Misfit(f"the header has {count} message indexes")
    indexes = []
    for _index in range(count):
        raw, at = varint(data, at)
        indexes.append(zigzag(raw))
    return tuple(indexes) or (0,), data[at:]
