# Interface of fast_path.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.fast_connection cimport FastConnection, FastWrites
from core_broker.kernel.guard cimport Guard
from core_broker.kernel.memory cimport Memory
from core_broker.kernel.scan cimport Header

cdef enum:
    HANDLERS_MAX = 16

cdef class FastHandler:
    # Answers are held until the disk has the messages; otherwise until the end of the iteration.
    cdef readonly bint waits_for_disk
    # The handler gives its answers to the connection itself, in place of writing to `path.out`.
    cdef readonly bint answers_directly
    cdef bint take(self, FastPath path, uint8_t *body, uint32_t body_bytes) except -1
    cdef int hold_answers(self, FastConnection protocol, bytes answers, int count) except -1

cdef class FastPath:
    # Header and connection of the request in hand, and memory for the answer.
    cdef Header header
    cdef FastConnection protocol
    cdef Memory out
    # Iteration number; grows also within an iteration whenever the slow path has run.
    cdef int64_t iteration
    # Time that the requests of this read have waited at least, in ms.
    cdef double waited_ms
    # True when the last `take` stopped half-way on purpose.
    cdef bint is_paused
    cdef object _view
    cdef uint8_t *_buffer
    cdef unsigned char[::1] _bytes
    cdef int64_t _buffer_bytes
    # Request codes and their handlers, side by side; at most HANDLERS_MAX.
    cdef int64_t _codes[HANDLERS_MAX]
    cdef int _handler_count
    cdef list _handlers
    # Access control, or None.
    cdef Guard _guard
    # Bytes of answers given to the socket at once, of this read.
    cdef int64_t sent_bytes
    # End of the iteration.
    cdef readonly FastWrites writes
    cdef int64_t take(self, FastConnection protocol, int64_t start, int64_t end, int64_t pause_at) except -1
    cdef FastHandler _handler_of(self, int64_t code)
    cdef int _deliver(self, FastHandler handler, int count) except -1
