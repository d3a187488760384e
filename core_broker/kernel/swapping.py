# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Byte-swapping many numbers with the GIL released.

Files have big-endian numbers; memory has the machine's byte order.
"""

import cython
from cython.cimports.libc.stdint import uint8_t, uint32_t


def swap_into(copy: cython.uchar[::1], numbers: cython.const[cython.int][::1]) -> None:
    """Copy numbers, big-endian. A thread that writes meanwhile must know which copies are torn."""
    count: cython.Py_ssize_t = numbers.shape[0]
    at: cython.pointer(uint8_t)
    number: uint32_t
    i: cython.Py_ssize_t
    if copy.shape[0] != 4 * count:
        raise ValueError(f"{copy.shape[0]} bytes are not for {count} numbers")
    if count == 0:
        return
    at = cython.address(copy[0])
    with cython.nogil:
        for i in range(count):
            number = cython.cast(uint32_t, numbers[i])
            at[4 * i] = cython.cast(uint8_t, number >> 24)
            at[4 * i + 1] = cython.cast(uint8_t, number >> 16)
            at[4 * i + 2] = cython.cast(uint8_t, number >> 8)
            at[4 * i + 3] = cython.cast(uint8_t, number)
