"""Stored records cut into their heads and their bodies, the usual ones only.

The compiled form of this is core_broker/kernel/cuts.py. Usual are records with the magic of short
topics, without certain system flags, and whole.
"""

from struct import Struct
from typing import Final

from core_broker.message.record import RECORD_BYTES_MIN, RECORD_MAGIC_V1

HEAD_BYTES: Final = 88
#: What follows a body: the lengths of topic and properties, and both.
_TAIL_BYTES_MIN: Final = RECORD_BYTES_MIN - HEAD_BYTES
#: Of a head: the size of the record, its magic, its system flag, and how long its body is.
_LOOKED_AT: Final = Struct(">II28xI44xI").unpack_from


def heads_room(length: int) -> int:
    """How many bytes the heads of so many bytes of records have at most."""
    return length // RECORD_BYTES_MIN * HEAD_BYTES


def cut(buffer: bytes, odd_flags: int, heads: memoryview, bodies: memoryview) -> tuple[int, int]:
    """Copy the heads and the bodies of the records in `buffer`, one behind the other.

    Returns how many heads and how many bytes of bodies there are; -1 and 0 when a record is not
    usual, or has one of `odd_flags`. There must be room for `heads_room(len(buffer))` and
    `len(buffer)` bytes.
    """
    found: list[bytes] = []
    view, length = memoryview(buffer), len(buffer)
    at, to, last = 0, 0, length - RECORD_BYTES_MIN
    while at <= last:
        size, magic, sys_flag, body_bytes = _LOOKED_AT(buffer, at)
        body_at, after = at + HEAD_BYTES, at + size
        body_end = body_at + body_bytes
        is_whole = body_end + _TAIL_BYTES_MIN <= after <= length
        if magic != RECORD_MAGIC_V1 or sys_flag & odd_flags or not is_whole:
            break
        found.append(buffer[at:body_at])
        bodies[to : to + body_bytes] = view[body_at:body_end]
        to += body_bytes
        at = after
    if at != length:
        return -1, 0
    heads[: len(found) * HEAD_BYTES] = b"".join(found)
    return len(found), to
