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
#: So much behind what is wanted is looked for in memory with it, and not looked for again for so
#: long. Memory that is short lets go of pages this young last.
RESIDENT_BYTES = cython.declare(int64_t, 1 << 20)
RESIDENT_S = cython.declare(cython.double, 0.02)


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

    def is_resident(self, start, end, now):
        """Whether all of `start` … `end` is in the page cache; `now` in s, monotonic, or 0.

        More than that is looked for, and relied on for a while by everybody who reads here: queues
        lie among each other in a log. Without a time nothing is relied on.
        """
        i: cython.int
        until: int64_t
        for i in range(WINDOWS):
            if 0 < now < self._seen_until_s[i]:
                if self._seen_from[i] <= start and end <= self._seen_to[i]:
                    return True
        until = self._resident_until(start, min(max(end, start + RESIDENT_BYTES), self.end))
        if now > 0:
            self._note_seen(start, until, now)
        return until >= end

    def _note_seen(self, start, end, now):
        """Note that `start` … `end` is in memory.

        With what was seen before it becomes one part, no longer than that holds.
        """
        i: cython.int
        for i in range(WINDOWS):
            if now < self._seen_until_s[i] and start <= self._seen_to[i]:
                if self._seen_from[i] <= end:
                    self._seen_from[i] = min(self._seen_from[i], start)
                    self._seen_to[i] = max(self._seen_to[i], end)
                    return
        i = self._next_window
        self._next_window = (i + 1) % WINDOWS
        self._seen_from[i], self._seen_to[i] = start, end
        self._seen_until_s[i] = now + RESIDENT_S

    def _resident_until(self, start, end):
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
