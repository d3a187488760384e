# What memory.py offers to the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef class Memory:
    cdef uint8_t *start
    cdef int64_t count
    # How many look at it from outside; nothing is written meanwhile.
    cdef int lent
    cdef int64_t _room
    cdef uint8_t *reserve(self, int64_t more) except NULL
    cdef bytes take(self)
