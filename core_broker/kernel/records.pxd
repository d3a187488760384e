# Interface of records.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.memory cimport Memory
from core_broker.kernel.octets cimport Text
from core_broker.kernel.properties cimport Properties
from core_broker.kernel.queues cimport SendQueue, SendTopic

cdef int keys_max(Properties properties) noexcept

cdef class Records:
    # Fields of the request in hand.
    cdef bytes peer
    cdef int64_t sys_flag, born
    cdef int messages
    cdef int64_t newest, now
    cdef int64_t _position, _end
    cdef bytes _host
    cdef bint _is_indexing
    cdef Memory _made, _entries
    # Memory for the next iteration, while the store reads from `_made`.
    cdef Memory _spare
    # The position at the last `mark`.
    cdef int64_t _marked_made, _marked_entries, _marked_position
    cdef int _marked_messages
    cdef void place(self, int64_t position, int64_t capacity, int64_t now) noexcept
    cdef bint reserve(self, SendTopic topic, int64_t parts, int count, int64_t keys) except -1
    cdef int64_t append(self, SendTopic topic, SendQueue queue, Properties properties, const uint8_t *body, uint32_t body_bytes, uint32_t flag) noexcept
    cdef void mark(self) noexcept
    cdef void go_back(self) noexcept
    cdef object take(self)
    cdef bytes take_entries(self)
    cdef void _index(self, SendTopic topic, Properties properties) noexcept
    cdef void _index_key(self, SendTopic topic, Text key, bint is_ascii) noexcept
