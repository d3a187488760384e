# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Split stored records into heads and bodies, compiled.

spark_jobs/sources/record_split.py is the form in plain Python and documents which records qualify.
message/record.py documents the record layout.
"""

import cython
from cython.cimports.core_broker.kernel.layout import RECORD_HEAD, RECORD_MAGIC_V1, RECORD_MIN
from cython.cimports.core_broker.kernel.octets import get32
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.string import memcpy

MAGIC_AT = cython.declare(cython.int, 4)
SYS_FLAG_AT = cython.declare(cython.int, 36)
BODY_LENGTH_AT = cython.declare(cython.int, 84)


def split_records(
    buffer: bytes, slow_path_flags: uint32_t, heads: uint8_t[::1], bodies: uint8_t[::1]
) -> tuple[int, int]:
    """Copy heads and bodies; returns the number of heads and of body bytes, or -1 and 0."""
    length: cython.Py_ssize_t = len(buffer)
    data: cython.pointer(cython.const[uint8_t]) = cython.cast(
        cython.pointer(cython.const[uint8_t]), buffer
    )
    count: cython.Py_ssize_t = 0
    copied: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    body_bytes: cython.Py_ssize_t
    record: cython.pointer(cython.const[uint8_t])
    if heads.shape[0] < length // RECORD_MIN * RECORD_HEAD or bodies.shape[0] < length:
        raise ValueError("heads or bodies is too small for the buffer")
    while length - at >= RECORD_MIN:
        record = data + at
        size = get32(record)
        body_bytes = get32(record + BODY_LENGTH_AT)
        if (
            get32(record + MAGIC_AT) != RECORD_MAGIC_V1
            or get32(record + SYS_FLAG_AT) & slow_path_flags
            or size > length - at
            or body_bytes > size - RECORD_MIN
        ):
            break
        memcpy(cython.address(heads[count * RECORD_HEAD]), record, RECORD_HEAD)
        if body_bytes:
            memcpy(cython.address(bodies[copied]), record + RECORD_HEAD, body_bytes)
        count += 1
        copied += body_bytes
        at += size
    if at != length:
        return -1, 0
    return count, copied
