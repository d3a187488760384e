# What writer.py offers to the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef extern from "sys/socket.h" nogil:
    const int MSG_DONTWAIT
    const int MSG_NOSIGNAL
    ssize_t send(int descriptor, const void *data, size_t size, int flags)

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from "semaphore.h" nogil:
    ctypedef struct sem_t:
        pass
    int sem_init(sem_t *semaphore, int is_shared, unsigned int value)
    int sem_destroy(sem_t *semaphore)
    int sem_post(sem_t *semaphore)
    int sem_wait(sem_t *semaphore)

cdef extern from *:
    """
    /* Numbers that two threads count with; what was written before is seen by who reads them. */
    #define gantry_next(number) __atomic_fetch_add(number, 1, __ATOMIC_ACQ_REL)
    #define gantry_get(number) __atomic_load_n(number, __ATOMIC_ACQUIRE)
    #define gantry_set(number, to) __atomic_store_n(number, to, __ATOMIC_RELEASE)
    """
    int64_t next_of "gantry_next" (int64_t *number) nogil
    int64_t seen "gantry_get" (int64_t *number) nogil
    void put "gantry_set" (int64_t *number, int64_t to) nogil

ctypedef struct Write:
    int descriptor
    const uint8_t *data
    int64_t size
    int64_t sent

cdef class Writer:
    # A batch is under way; there is no room for one more.
    cdef readonly bint is_busy, is_full
    # How many batches there were.
    cdef readonly int64_t batches
    # Whom the batch is for, and what keeps its bytes.
    cdef list _lines
    cdef list _answers
    cdef Write _writes[256]
    cdef int _count
    # Both threads count with these. Of `_next` the upper half is how many there are and the lower
    # the next one to send, so that nobody takes a number of one batch for one of another.
    cdef int64_t _next, _sent
    cdef bint _is_over, _is_made
    cdef sem_t _asked
    cdef int add(self, object line, int descriptor, bytes answers) except -1
    cdef int begin(self) except -1
    cdef list join(self)
    cdef void _help(self) noexcept nogil
