# Interface of answers.py for the other modules of the kernel.
from libc.stdint cimport int64_t

from core_broker.kernel.memory cimport Memory

cdef class Answers:
    cdef tuple _parts
    cdef bytes _id_prefix
    cdef int64_t _longest
    cdef Memory _out
    cdef int64_t _began_at
    cdef bint _has_id
    cdef int reserve(self, Memory out, int64_t ids) except -1
    cdef void begin(self, int64_t opaque) noexcept
    cdef void add_id(self, int64_t offset_physical) noexcept
    cdef void end(self, int64_t queue_id, int64_t queue_offset) noexcept
    cdef void _put(self, bytes text) noexcept
    cdef void _put_number(self, int64_t number) noexcept
