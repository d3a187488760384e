# Interface of fast_path.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.connection_state cimport ConnectionState
from core_broker.kernel.guard cimport Guard
from core_broker.kernel.memory cimport Memory
from core_broker.kernel.scan cimport Header
from core_broker.kernel.writer cimport Writer

cdef enum:
    HANDLERS_MAX = 16

cdef class FastHandler:
    # Answers are held until the disk has the messages; otherwise until the end of the iteration.
    cdef readonly bint waits_for_disk
    # The handler gives its answers to the connection itself, in place of writing to `path.out`.
    cdef readonly bint answers_directly
    cdef bint take(self, FastPath path, uint8_t *body, uint32_t body_bytes) except -1
    cdef int hold_answers(self, FastProtocol protocol, bytes answers, int count) except -1

cdef class FastPath:
    # Header and connection of the request in hand, and memory for the answer.
    cdef Header header
    cdef FastProtocol protocol
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
    # Begin of the iteration, in s of the monotonic clock; 0 outside of an iteration.
    cdef double _began
    # Thread that sends the answers of busy iterations, or None.
    cdef Writer _writer
    cdef bint _is_settling_scheduled
    cdef int _settle(self) except -1
    cdef int64_t take(self, FastProtocol protocol, int64_t start, int64_t end, int64_t pause_at) except -1
    cdef FastHandler _handler_of(self, int64_t code)
    cdef int _deliver(self, FastHandler handler, int count) except -1

cdef class FastProtocol:
    cdef readonly ConnectionState state
    # remoting.Connection: gets all callbacks but reads and common writes.
    cdef readonly object connection
    cdef readonly bytes peer_record
    # The peer's IP address, for the guard.
    cdef readonly bytes address
    cdef readonly int local_port
    # The last heartbeat of the connection, if it changed nothing (heartbeats.py).
    cdef public object kept_heartbeat
    cdef FastPath _path
    # remoting.Iteration, and its list of connections with answers.
    cdef object _iteration
    cdef list _dirty
    cdef object _transport
    cdef int _socket
    # The beginning of a frame, which goes before the bytes of the next read.
    cdef bytes _begin
    cdef int64_t _in_flight_max, _high_water_bytes
    cdef int add_answers(self, bytes answers) except -1
    cdef int free_descriptor(self) except? -1
    cdef bint _is_caught_up(self) except -1
    cdef int _write_rest(self, bytes rest) except -1
