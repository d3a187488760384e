# C types for the fields of store/queue_tail.py, which is compiled into this package.
cimport cython
from libc.stdint cimport int64_t

cdef class QueueTail:
    cdef public str topic
    cdef public int64_t min_offset, max_offset, end_offset, next_offset, end_physical
    cdef public int64_t _appended_end, _tail_from
    cdef public bytearray _tail
    cpdef append(self, int64_t offset_physical, int64_t size, int64_t tags_code)
    cpdef append_units(self, units, int64_t end_physical)
    cpdef int64_t keep(self) except -1
    cpdef int64_t publish(self) except -1
    cpdef rollback(self)

@cython.locals(tail=QueueTail, first=int64_t, heard=list)
cpdef list publish_all(set appended, dict unwritten, set full, int64_t tail_bytes_max, list listeners)
