# C types for the fields of remoting/connection_state.py, which is compiled into this package.
cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class ConnectionState:
    cdef public bint is_closing, is_closed, is_stalled, is_write_paused, is_dirty, is_lent
    cdef public bint is_collecting, has_receive_backlog
    cdef public str close_reason
    cdef public int64_t held, unfinished_bytes, idle_checks, out_bytes
    cdef public double arrived
    cdef public list out
    cpdef bint close(self, str reason) except -1
    cpdef lose(self, str reason)
    cpdef bint stall(self) noexcept
    cpdef void resume(self) noexcept
    cpdef bint mark_dirty(self) noexcept
    cpdef bytes take_answers(self)
