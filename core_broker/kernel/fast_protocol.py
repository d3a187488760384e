# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The reads of a connection on the compiled fast path.

Reads go into the buffer that all connections share, behind the beginning of a frame that an earlier
read has cut. asyncio calls `get_buffer` and `buffer_updated`, the poller (poller.py) the functions
behind them.
"""

import cython
from cython.cimports.core_broker.kernel.connection_state import ConnectionState
from cython.cimports.core_broker.kernel.fast_connection import FastConnection
from cython.cimports.core_broker.kernel.fast_path import FastPath
from cython.cimports.core_broker.kernel.octets import get32
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.libc.string import memcpy

LENGTH_BYTES = cython.declare(cython.int, 4)
#: Minimum size of a read that is split into two iterations, bytes.
PAUSE_BYTES_MIN = cython.declare(cython.int, 32 * 1024)
#: Maximum size of a frame whose beginning is put before the next read, bytes; the frame splitter
#: collects longer frames.
CUT_BYTES_MAX = cython.declare(cython.int, 128 * 1024)


@cython.cclass
class FastProtocol(FastConnection):
    """Reads and writes of one connection, in front of `connection`, which does everything else.

    asyncio calls a subclass, which forwards the other callbacks.
    """

    def __init__(self, path: FastPath, connection: object, iteration: object):
        FastConnection.__init__(self, path.writes, connection, iteration)
        self._path = path
        self._begin = b""

    def get_buffer(self, sizehint: cython.Py_ssize_t):
        """Copy the beginning of a frame into the read buffer; return the buffer behind it."""
        count: int64_t = self.restore_begin()
        return self._path._view[count:] if count else self._path._view

    def buffer_updated(self, nbytes: cython.Py_ssize_t):
        """Bytes have arrived in the read buffer."""
        self.received(nbytes)

    def restore_begin(self):
        """Copy the beginning of a frame into the read buffer; return its size."""
        count: int64_t = len(self._begin)
        if count:
            memcpy(self._path._buffer, PyBytes_AS_STRING(self._begin), count)
        return count

    def received(self, count):
        """Handle `count` bytes in the read buffer, behind the beginning of a frame."""
        path: FastPath = self._path
        state: ConnectionState = self.state
        end: int64_t = len(self._begin) + count
        start: int64_t = 0
        if state.is_closing:
            return 0
        if path.writes.began == 0.0:
            path.iteration += 1
            path.writes.began = self._iteration.begin()
        state.arrived = path.writes.began
        path.sent_bytes = 0
        if state.has_receive_backlog or end == path._buffer_bytes:
            self.connection.date_back(count)
        if state.held < self._in_flight_max and not (state.is_collecting or state.is_stalled):
            start = path.take(self, 0, end, end // 2 if end >= PAUSE_BYTES_MIN else 0)
            if path.is_paused:
                # The peer works on the first answers while the other requests are handled.
                self._iteration.end()
                if state.is_closing:
                    return 0
                path.iteration += 1
                path.writes.began = self._iteration.begin()
                if not state.is_stalled:
                    start = path.take(self, start, end, 0)
            if start > 0:
                state.idle_checks = 0
            if _is_short_begin(path._buffer + start, end - start):
                self._begin = PyBytes_FromStringAndSize(
                    cython.cast(cython.p_char, path._buffer + start), end - start
                )
                if end - start != state.unfinished_bytes:
                    self.connection.count_unfinished(end - start)
                return 0
        path.iteration += 1
        self._begin = b""
        self._begin = self.connection.take_rest(path._view[start:end])
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_short_begin(at: cython.pointer(uint8_t), count: int64_t) -> cython.bint:
    """Return true for the beginning of a frame that is short enough for the next read."""
    needed: int64_t
    if count < LENGTH_BYTES:
        return True
    needed = cython.cast(int64_t, get32(at)) + LENGTH_BYTES
    return count < needed <= CUT_BYTES_MAX
