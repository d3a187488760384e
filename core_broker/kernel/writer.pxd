# Interface of writer.py for the other modules of the kernel.
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
    /* Counters of two threads; a reader of a counter sees all writes before the counter's write. */
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
    # A batch is under way; the next batch takes no more answers.
    cdef readonly bint is_busy, is_full
    # Batches since the start.
    cdef readonly int64_t batches
    # Protocols of the batch, and references that keep its bytes alive.
    cdef list _protocols
    cdef list _answers
    cdef Write _writes[256]
    cdef int _count
    # Counters of both threads. The upper half of `_next` is the number of answers, the lower half
    # the index of the next answer to send, so that an index always belongs to its own batch.
    cdef int64_t _next, _sent
    cdef bint _is_over, _is_made
    cdef sem_t _asked
    cdef int add(self, object protocol, int descriptor, bytes answers) except -1
    cdef int begin(self) except -1
    cdef list join(self)
    cdef void _help(self) noexcept nogil
