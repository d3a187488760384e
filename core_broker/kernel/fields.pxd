# Interface of fields.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

from core_broker.kernel.scan cimport Header

# Indexes of the fields that other modules read as text.
cdef enum:
    GROUP_FIELD = 26
    TOPIC_FIELD = 27
    SUBSCRIPTION_FIELD = 35
    EXPRESSION_TYPE_FIELD = 36

cdef class NamedHeader(Header):
    cdef int64_t queue_id, offset, count_max, flags, commit, bytes_max, sub_version, suspend_ms
    cdef bint read_pull(self) noexcept nogil
    cdef bint read_commit(self) noexcept nogil
    cdef bint _is_int(self, int field, int64_t *value) noexcept nogil
    cdef bytes key(self)
    cdef str text(self, int field)
    cdef object pull_request(self)
