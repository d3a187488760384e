# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Writing zeros ahead of the end of a log, with the GIL released throughout."""

import cython
from cython.cimports.cpython.exc import PyErr_SetFromErrno
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.posix.unistd import pwrite


def write_zeros(
    fd: cython.int, offset: int64_t, size: int64_t, piece: cython.const[uint8_t][::1]
) -> None:
    """Write `size` zeros at `offset`, at most one piece per call, or raise OSError."""
    at: int64_t = offset
    end: int64_t = offset + size
    count: int64_t = 0
    piece_bytes: int64_t = piece.shape[0]
    with cython.nogil:
        while at < end:
            count = min(piece_bytes - at % piece_bytes, end - at)
            count = pwrite(fd, cython.address(piece[0]), count, at)
            if count < 0:
                break
            at += count
    if count < 0:
        PyErr_SetFromErrno(OSError)
