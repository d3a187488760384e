# cython: language_level=3
"""A growing block of memory that every read fills again from the start."""

import cython
from cython.cimports.cpython.buffer import Py_buffer, PyBuffer_FillInfo
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.stdlib import free, malloc, realloc

BYTES_AT_FIRST = cython.declare(cython.int, 65536)


@cython.cclass
class Memory:
    """`count` bytes from `start` on are in use; `reserve` makes more bytes writable.

    Python sees the bytes in use as a buffer (`memoryview`), without a copy.
    """

    def __cinit__(self):
        self._capacity = BYTES_AT_FIRST
        self.start = cython.cast(cython.pointer(uint8_t), malloc(self._capacity))
        if self.start == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.start)

    def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int):
        PyBuffer_FillInfo(view, self, self.start, self.count, True, flags)
        self.lent += 1

    def __releasebuffer__(self, view: cython.pointer(Py_buffer)):
        self.lent -= 1

    def reserve(self, more):
        """Reserve `more` bytes, and return their address."""
        if self.count + more > self._capacity:
            larger: cython.pointer(uint8_t) = cython.cast(
                cython.pointer(uint8_t), realloc(self.start, 2 * (self.count + more))
            )
            if larger == cython.NULL:
                raise MemoryError
            self.start = larger
            self._capacity = 2 * (self.count + more)
        return self.start + self.count

    def take(self):
        """Return a copy of the bytes in use, and begin again with none."""
        taken = PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.start), self.count)
        self.count = 0
        return taken
