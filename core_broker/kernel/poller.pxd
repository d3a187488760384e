# Interface of poller.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from core_broker.kernel.fast_path cimport FastPath
from core_broker.kernel.fast_protocol cimport FastProtocol

cdef extern from *:
    """
    #include <sys/socket.h>
    #if defined(__linux__)
    #include <sys/epoll.h>
    #else
    /* Without epoll there is no poller, and the event loop reads. */
    #include <errno.h>
    #include <stdint.h>
    #define EPOLLIN 1
    #define EPOLL_CLOEXEC 0
    #define EPOLL_CTL_ADD 1
    #define EPOLL_CTL_DEL 2
    struct epoll_event { uint32_t events; union { uint64_t u64; } data; };
    static int epoll_create1(int flags) { errno = ENOSYS; return -1; }
    static int epoll_ctl(int e, int o, int d, struct epoll_event *v) { errno = ENOSYS; return -1; }
    static int epoll_wait(int e, struct epoll_event *v, int n, int ms) { errno = ENOSYS; return -1; }
    #endif
    """
    const uint32_t EPOLLIN
    const int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL
    const int MSG_DONTWAIT
    ctypedef union epoll_data_t:
        uint64_t u64
    ctypedef struct epoll_event "struct epoll_event":
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags) nogil
    int epoll_ctl(int epoll, int operation, int descriptor, epoll_event *event) nogil
    int epoll_wait(int epoll, epoll_event *events, int count, int timeout_ms) nogil
    ssize_t recv(int descriptor, void *data, size_t size, int flags) nogil

cdef enum:
    # Maximum connections read in one round.
    EVENTS_MAX = 64

cdef class Poller:
    # Rounds with reads, and reads, since the start.
    cdef readonly int64_t rounds, reads
    # Connections that the poller reads.
    cdef readonly int64_t connections
    cdef FastPath _path
    cdef object _iteration, _owner
    cdef int _epoll
    cdef epoll_event _events[EVENTS_MAX]
    cdef int _count
    # End of the rounds of a call, in s of the monotonic clock, and bytes of the round so far.
    cdef double _end
    cdef int64_t _round_bytes
    # Connections by descriptor, None where the poller reads none.
    cdef list _protocols
    cdef uint32_t _last_registration
    cdef int _poll(self) except -1
    cdef FastProtocol _protocol_of(self, uint64_t ready)
    cdef int _read_each(self) except -1
    cdef int _read(self, FastProtocol protocol) except -1
