# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A range of a file mapped into memory: reads of the page cache without a system call.

Readers call `is_resident` first. Reading a page that is not in the page cache would wait for the
disk; reading a page behind the end of the file, or of a failing disk, would end the process.
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
#: Maximum number of pages of one mincore() call; longer reads are for the slow path.
PAGES_MAX = cython.declare(cython.int, 2048)
#: Range behind the requested start that one check covers, bytes, and time that the result holds, s.
#: The system evicts pages that were used so recently last.
RESIDENT_BYTES = cython.declare(int64_t, 1 << 20)
RESIDENT_S = cython.declare(cython.double, 0.02)


@cython.cclass
class Mapping:
    """Bytes `at` … `at + size` of a file, which are `start` … `start + size` of a log.

    `at` is a multiple of the page size, the file is long enough, and may be closed afterwards.
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
        """Unmap the range; only `close` may be called afterwards."""
        if self.base != cython.NULL:
            munmap(self.base, self.end - self.start)
            self.base = cython.NULL

    def has(self, start, end):
        """Return true when `start` … `end` is mapped here."""
        return self.base != cython.NULL and self.start <= start and end <= self.end

    def is_resident(self, start, end, now):
        """Return true when `start` … `end` is in the page cache; `now` in s, monotonic, or 0.

        The check covers more than the range, and the result is kept for all readers for a while:
        the records of many queues are interleaved in a log. With a `now` of 0 no result is kept.
        """
        i: cython.int
        until: int64_t
        for i in range(WINDOWS):
            if 0 < now < self._resident_expiry_s[i]:
                if self._resident_from[i] <= start and end <= self._resident_to[i]:
                    return True
        until = self._resident_until(start, min(max(end, start + RESIDENT_BYTES), self.end))
        if now > 0:
            self._keep_resident(start, until, now)
        return until >= end

    def _keep_resident(self, start, end, now):
        """Keep `start` … `end` as resident.

        An adjacent range that is kept already grows, and keeps its time of expiry.
        """
        i: cython.int
        for i in range(WINDOWS):
            if now < self._resident_expiry_s[i] and start <= self._resident_to[i]:
                if self._resident_from[i] <= end:
                    self._resident_from[i] = min(self._resident_from[i], start)
                    self._resident_to[i] = max(self._resident_to[i], end)
                    return
        i = self._next_window
        self._next_window = (i + 1) % WINDOWS
        self._resident_from[i], self._resident_to[i] = start, end
        self._resident_expiry_s[i] = now + RESIDENT_S

    def _resident_until(self, start, end):
        """Return the end of the resident pages from `start` on; `start` for too long a range."""
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
