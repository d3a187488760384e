# Interface of pieces.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef extern from "sys/uio.h" nogil:
    ctypedef struct iovec "struct iovec":
        void *iov_base
        size_t iov_len

cdef extern from "sys/socket.h" nogil:
    const int MSG_DONTWAIT
    const int MSG_NOSIGNAL
    ctypedef struct msghdr "struct msghdr":
        iovec *msg_iov
        size_t msg_iovlen
    ssize_t sendmsg(int descriptor, const msghdr *message, int flags)

cdef enum:
    # Maximum size of the head of an answer, bytes, and maximum number of ranges of memory.
    HEAD_MAX = 1024
    RANGES_MAX = 512

cdef class Pieces:
    cdef uint8_t head[HEAD_MAX]
    # Head and ranges; their number and total size.
    cdef iovec _pieces[RANGES_MAX + 1]
    cdef int _count
    cdef int64_t _size
    cdef int begin(self, int64_t head_bytes) except -1
    cdef int add(self, uint8_t *at, int64_t size) except -1
    cdef bytes join(self)
    cdef bytes send(self, int descriptor)
    cdef bytes _copy(self, int64_t start)
