# Interface of memory.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef class Memory:
    cdef uint8_t *start
    cdef int64_t count
    # Number of Python buffers on the block; the kernel writes nothing while there are any.
    cdef int lent
    cdef int64_t _capacity
    cdef uint8_t *reserve(self, int64_t more) except NULL
    cdef bytes take(self)
