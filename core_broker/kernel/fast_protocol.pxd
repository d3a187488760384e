# Interface of fast_protocol.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint32_t

from core_broker.kernel.fast_connection cimport FastConnection
from core_broker.kernel.fast_path cimport FastPath

cdef class FastProtocol(FastConnection):
    # Number of the registration at the poller; 0 while the event loop reads, or nobody.
    cdef uint32_t _registration
    cdef FastPath _path
    # The beginning of a frame, which goes before the bytes of the next read.
    cdef bytes _begin
    cdef int64_t restore_begin(self) except -1
    cdef int received(self, int64_t count) except -1
