# Interface of queues.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.queue_tail cimport QueueTail

cdef enum:
    UNITS_AT_FIRST = 16
    # Character between topic and key in the text that the index hashes.
    KEY_SEPARATOR = 35

cdef class SendQueue:
    cdef readonly object queue
    cdef readonly int queue_id
    cdef readonly int count
    # Messages and bytes of records since the last `forget_counts`.
    cdef readonly int64_t messages
    cdef readonly int64_t stored_bytes
    cdef readonly int64_t end
    cdef int64_t next_offset
    cdef uint8_t *_units
    cdef int _capacity
    cdef QueueTail enter_units(self)
    cdef int reserve(self, int more) except -1
    cdef void go_back(self, int count, int64_t stored_bytes) noexcept
    cdef void add(self, int64_t offset, int64_t size, int64_t tags_code) noexcept

cdef class SendTopic:
    cdef readonly bytes name
    cdef uint32_t key_seed
    cdef list queues
