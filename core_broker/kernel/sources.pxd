# What sources.py offers to the other modules of the kernel.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef class PullSource:
    cdef readonly object queue
    # The test on a tags code, None when all pass.
    cdef readonly object accept
    cdef readonly bytes topic
    cdef readonly tuple target
    cdef readonly int queue_id
    cdef readonly int64_t suggested
    # What was handed out since it was last asked.
    cdef readonly int64_t pulls, messages, stored_bytes
    cdef int32_t *_codes
    cdef int _code_count
    cdef object _read
    # The places where it is read: units from the first up to the one behind, and how many were
    # wanted.
    cdef list _units
    cdef const uint8_t *_at[4]
    cdef int64_t _first[4]
    cdef int64_t _behind[4]
    cdef int _wanted[4]
    cdef int _place, _next_place
    cdef bint wants(self, int64_t tags_code) noexcept nogil
    cdef const uint8_t *unit(self, int64_t offset) except? NULL
    cdef int _turn_to(self, int64_t offset) except -1
    cdef bint owns(self, const uint8_t *record, int64_t place, int64_t size, int64_t offset) noexcept
    cdef bint _is_topic(self, const uint8_t *at, const uint8_t *end, bint is_long) noexcept
