# What mapping.py offers to the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef class Mapping:
    # The bytes from `start` to `end` of whatever is mapped lie at `base`; NULL when it is closed.
    cdef uint8_t *base
    cdef readonly int64_t start, end
    # What somebody has seen in memory, and how long that holds, in s of the monotonic clock.
    cdef int64_t _seen_from, _seen_to
    cdef double _seen_until_s
    cdef bint has(self, int64_t start, int64_t end) noexcept nogil
    cdef int64_t resident_until(self, int64_t start, int64_t end) noexcept
    cdef bint was_seen(self, int64_t start, int64_t end, double now) noexcept
    cdef void note_seen(self, int64_t start, int64_t end, double now, double until) noexcept
