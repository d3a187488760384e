# What hot_path.py offers to the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.memory cimport Memory
from core_broker.kernel.scan cimport Header
from core_broker.kernel.writer cimport Writer

cdef enum:
    KINDS_MAX = 16

cdef class FastHandler:
    # Its answers are sent when the disk has what the turn stored, not at the end of the turn.
    cdef readonly bint waits_for_disk
    # It hands its answers to the connection by itself.
    cdef readonly bint answers_alone
    cdef bint take(self, FastPath asked, uint8_t *body, uint32_t body_bytes) except -1
    cdef int hold_back(self, object line, bytes answers, int count) except -1

cdef class FastPath:
    # The request under way: its header, who asks, and where the answer goes.
    cdef Header header
    cdef FastLine line
    cdef Memory out
    # Grows with each turn, and within a turn whenever the plain path has run.
    cdef int64_t turn
    # How long the requests of this read have waited at least, in ms.
    cdef double waited_ms
    # The last `take` stopped half-way.
    cdef bint is_paused
    cdef object _endpoint
    cdef object _view
    cdef uint8_t *_buffer
    cdef unsigned char[::1] _bytes
    cdef int64_t _buffer_bytes
    # One list of codes and one of kinds; there are no more than KINDS_MAX.
    cdef int64_t _codes[KINDS_MAX]
    cdef int _kind_count
    cdef list _kinds
    cdef double _turn_began
    cdef list _dirty
    # Sends the answers of busy turns, if there is one.
    cdef Writer _writer
    cdef bint _settles_soon
    cdef int _settle(self) except -1
    cdef int64_t take(self, FastLine line, int64_t start, int64_t end, int64_t pause_at) except -1
    cdef FastHandler _kind_of(self, int64_t code)
    cdef int _deliver(self, FastHandler kind, int count) except -1

cdef class FastLine:
    cdef public bint closed, _is_dirty, _stalled, _write_paused, _has_backlog, _is_collecting
    cdef public double arrived
    cdef public str _closing
    cdef public bytes peer_record
    # The heartbeat that came last, when it changed nothing (beats.py).
    cdef public object beat
    cdef public bytes _cut
    cdef public list _out
    cdef public int64_t _out_bytes, _held, _looks, _unfinished
    cdef public object _endpoint
    cdef FastPath _path
    cdef object _wire
    cdef int _socket
    # The writer has answers of it.
    cdef bint _in_flight
    cdef int64_t _in_flight_max, _high_water_bytes
    cdef int answer_made(self, bytes answers) except -1
    cdef bint _may_send(self) except -1
    cdef int _sent(self, bytes rest) except -1
