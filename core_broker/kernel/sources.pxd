# Interface of sources.py for the other modules of the kernel.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef class PullSource:
    cdef readonly object queue
    # Predicate of a tags code; None when every message passes.
    cdef readonly object accept
    cdef readonly bytes topic
    # Group, topic and queue id, as `shell.commit` gets them.
    cdef readonly object target
    cdef readonly int queue_id
    cdef readonly int64_t suggested
    # Counters since the last `forget_counts`.
    cdef readonly int64_t pulls, messages, stored_bytes
    cdef int32_t *_codes
    cdef int _code_count
    # Tags codes that are known to be right; a code has one slot.
    cdef int64_t _known[32]
    cdef object _read
    # Kept unit ranges: bytes, address, first offset, end offset, requested number of units.
    cdef list _units
    cdef const uint8_t *_at[4]
    cdef int64_t _first[4]
    cdef int64_t _end[4]
    cdef int _requested[4]
    cdef int _range, _next_range
    cdef bint passes(self, int64_t tags_code) noexcept nogil
    cdef bint knows(self, int64_t tags_code) except -1
    cdef const uint8_t *unit(self, int64_t offset) except? NULL
    cdef int _select_range(self, int64_t offset) except -1
    cdef bint owns(self, const uint8_t *record, int64_t offset_physical, int64_t size, int64_t offset) noexcept
    cdef bint _is_topic(self, const uint8_t *at, const uint8_t *end, bint is_long) noexcept
