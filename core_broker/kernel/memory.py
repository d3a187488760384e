# cython: language_level=3
"""Memory that grows and is used again from the start by each read."""

import cython
from cython.cimports.cpython.buffer import Py_buffer, PyBuffer_FillInfo
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.stdlib import free, malloc, realloc

BYTES_AT_FIRST = cython.declare(cython.int, 65536)


@cython.cclass
class Memory:
    """`count` bytes from `start` on are in use; whoever has reserved more may write them.

    They can be looked at from outside (`memoryview`), without a copy.
    """

    def __cinit__(self):
        self._room = BYTES_AT_FIRST
        self.start = cython.cast(cython.pointer(uint8_t), malloc(self._room))
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
        """Make room for so many more bytes, and return where they go."""
        if self.count + more > self._room:
            larger: cython.pointer(uint8_t) = cython.cast(
                cython.pointer(uint8_t), realloc(self.start, 2 * (self.count + more))
            )
            if larger == cython.NULL:
                raise MemoryError
            self.start = larger
            self._room = 2 * (self.count + more)
        return self.start + self.count

    def take(self):
        """A copy of the bytes in use, which are forgotten here."""
        taken = PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.start), self.count)
        self.count = 0
        return taken
