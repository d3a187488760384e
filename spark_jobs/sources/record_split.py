"""Split stored records into heads and bodies, in plain Python.

core_broker/kernel/record_split.py is the compiled form. Both handle records on the fast path only:
complete records with the magic of short topics and without the given system flags.
"""

from typing import Final

from core_broker.message.record_layout import HEAD, RECORD_BYTES_MIN, RECORD_MAGIC_V1

#: Size of a record's head, bytes: the fixed-length fields before the body.
HEAD_BYTES: Final = HEAD.size
#: Minimum size of the fields behind a body, bytes: the lengths of topic and properties.
_TAIL_BYTES_MIN: Final = RECORD_BYTES_MIN - HEAD_BYTES
#: Fields of a head: record size, magic, system flag, body length.
_unpack_fields: Final = HEAD.select("store_size", "magic", "sys_flag", "body_bytes").unpack_from


def heads_bytes_max(length: int) -> int:
    """Maximum size, in bytes, of the heads in `length` bytes of records."""
    return length // RECORD_BYTES_MIN * HEAD_BYTES


def split_records(
    buffer: bytes, slow_path_flags: int, heads: memoryview, bodies: memoryview
) -> tuple[int, int]:
    """Copy the heads and the bodies of the records in `buffer` to two contiguous areas.

    Returns the number of heads and the number of body bytes; -1 and 0 when a record needs the slow
    path: it is incomplete, has another magic, or has one of `slow_path_flags`. The areas must hold
    `heads_bytes_max(len(buffer))` and `len(buffer)` bytes.
    """
    head_list: list[bytes] = []
    view, length = memoryview(buffer), len(buffer)
    at, to, last = 0, 0, length - RECORD_BYTES_MIN
    while at <= last:
        size, magic, sys_flag, body_bytes = _unpack_fields(buffer, at)
        body_at, after = at + HEAD_BYTES, at + size
        body_end = body_at + body_bytes
        is_complete = body_end + _TAIL_BYTES_MIN <= after <= length
        if magic != RECORD_MAGIC_V1 or sys_flag & slow_path_flags or not is_complete:
            break
        head_list.append(buffer[at:body_at])
        bodies[to : to + body_bytes] = view[body_at:body_end]
        to += body_bytes
        at = after
    if at != length:
        return -1, 0
    heads[: len(head_list) * HEAD_BYTES] = b"".join(head_list)
    return len(head_list), to
