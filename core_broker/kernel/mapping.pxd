# Interface of mapping.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # Number of resident ranges that a mapping keeps, for consumers at different offsets.
    WINDOWS = 16

cdef class Mapping:
    # Address of log offset `start`; NULL after `close`.
    cdef uint8_t *base
    cdef readonly int64_t start, end
    # Resident ranges and their times of expiry, in s of the monotonic clock.
    cdef int64_t _resident_from[WINDOWS]
    cdef int64_t _resident_to[WINDOWS]
    cdef double _resident_expiry_s[WINDOWS]
    cdef int _next_window
    cdef bint has(self, int64_t start, int64_t end) noexcept nogil
    cdef bint is_resident(self, int64_t start, int64_t end, double now) noexcept
    cdef void _keep_resident(self, int64_t start, int64_t end, double now) noexcept
    cdef int64_t _resident_until(self, int64_t start, int64_t end) noexcept
