# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A piece of a file in the memory of the process: the page cache itself, read without a call.

Touching a page that is not in the page cache would wait for the disk, and one behind the end of
the file or of a failing disk would end the process: whoever reads asks `resident_until` before.
"""

import cython
from cython.cimports.core_broker.kernel.mman import (
    MAP_FAILED,
    MAP_SHARED,
    PROT_READ,
    mincore,
    mmap,
    munmap,
)
from cython.cimports.cpython.exc import PyErr_SetFromErrno
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.posix.unistd import _SC_PAGESIZE, sysconf

PAGE_BYTES = cython.declare(int64_t, sysconf(_SC_PAGESIZE))
#: So many pages are asked about at once; a reader of more goes another way.
PAGES_MAX = cython.declare(cython.int, 2048)


@cython.cclass
class Mapping:
    """Bytes `at` … `at + size` of a file, which stand for `start` … `start + size` of a log.

    `at` is a multiple of the page size, and the file has these bytes; it may be closed afterwards.
    """

    def __cinit__(self, fd: cython.int, at: int64_t, size: int64_t, start: int64_t):
        address: cython.p_void = mmap(cython.NULL, size, PROT_READ, MAP_SHARED, fd, at)
        if address == MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        self.base = cython.cast(cython.pointer(uint8_t), address)
        self.start = start
        self.end = start + size

    def __dealloc__(self):
        self.close()

    def close(self) -> None:
        """Let go of it; it may be asked for nothing any more, but this."""
        if self.base != cython.NULL:
            munmap(self.base, self.end - self.start)
            self.base = cython.NULL

    def has(self, start, end):
        """Whether all of `start` … `end` is mapped here."""
        return self.base != cython.NULL and self.start <= start and end <= self.end

    def was_seen(self, start, end, now):
        """Whether somebody saw `start` … `end` in memory lately; `now` 0 is not known."""
        return 0 < now < self._seen_until_s and self._seen_from <= start and end <= self._seen_to

    def note_seen(self, start, end, now, until):
        """Note for others that `start` … `end` is in memory, which may be relied on for a while.

        Queues lie among each other in a log: who reads another one need not look again. With what
        was seen before it becomes one part, no longer than that holds.
        """
        if now < self._seen_until_s and start <= self._seen_to and self._seen_from <= end:
            self._seen_from = min(self._seen_from, start)
            self._seen_to = max(self._seen_to, end)
        else:
            self._seen_from, self._seen_to, self._seen_until_s = start, end, until

    def resident_until(self, start, end):
        """Up to where from `start` on all is in the page cache: `end`, or less; or it is much."""
        pages: uint8_t[2048]
        first: int64_t = (start - self.start) // PAGE_BYTES
        count: int64_t = (end - self.start + PAGE_BYTES - 1) // PAGE_BYTES - first
        i: cython.int
        if count > PAGES_MAX or not self.has(start, end):
            return start
        if mincore(self.base + first * PAGE_BYTES, count * PAGE_BYTES, pages):
            return start
        for i in range(count):
            if not pages[i] & 1:
                return max(start, self.start + (first + i) * PAGE_BYTES)
        return end
