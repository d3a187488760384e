# What mapping.py offers to the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # Consumers may be at so many places of a mapping at once and have it looked at once for all.
    WINDOWS = 16

cdef class Mapping:
    # The bytes from `start` to `end` of whatever is mapped lie at `base`; NULL when it is closed.
    cdef uint8_t *base
    cdef readonly int64_t start, end
    # Parts seen in memory, and until when that holds, in s of the monotonic clock.
    cdef int64_t _seen_from[WINDOWS]
    cdef int64_t _seen_to[WINDOWS]
    cdef double _seen_until_s[WINDOWS]
    cdef int _next_window
    cdef bint has(self, int64_t start, int64_t end) noexcept nogil
    cdef bint is_resident(self, int64_t start, int64_t end, double now) noexcept
    cdef void _note_seen(self, int64_t start, int64_t end, double now) noexcept
    cdef int64_t _resident_until(self, int64_t start, int64_t end) noexcept
