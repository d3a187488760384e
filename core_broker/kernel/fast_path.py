# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The compiled fast path: from received bytes to answers, one call per read and one per write.

    FastProtocol   one per connection: asyncio's protocol for reads, and common writes
    FastPath       one per server: finds the handler of each frame in a read
    FastHandler    one per kind of request: sends (sends.py), pulls, commits, heartbeats

A handler takes a request whole or leaves the request untouched. FastPath takes the frames of a read
from the first one up to a frame that no handler takes. That frame and all frames behind it go to
the connection (remoting/connection.py), so that answers keep the order of their requests.
"""

import asyncio

import cython
from cython.cimports.core_broker.kernel.clock import monotonic_s
from cython.cimports.core_broker.kernel.connection_state import ConnectionState
from cython.cimports.core_broker.kernel.fields import NamedHeader
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import get32
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.core_broker.kernel.writer import Writer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcpy

FRAME_HEAD = cython.declare(cython.int, 8)
FRAME_MAX = cython.declare(uint32_t, 16 << 20)
LENGTH_BYTES = cython.declare(cython.int, 4)
#: Minimum connections with answers, and minimum mean bytes of answers, for the writer thread: the
#: event loop sends shorter answers before the thread is awake.
LENT_CONNECTIONS_MIN = cython.declare(cython.int, 4)
LENT_MEAN_BYTES_MIN = cython.declare(cython.int, 512)
#: Maximum delay until the event loop collects a batch of the writer thread, s; each busy iteration
#: collects the previous batch.
SETTLED_S = cython.declare(cython.double, 0.002)
#: Minimum size of a read that is split into two iterations, bytes, and minimum requests in a half.
PAUSE_BYTES_MIN = cython.declare(cython.int, 32 * 1024)
PAUSE_COUNT_MIN = cython.declare(cython.int, 16)
#: Maximum size of a frame whose beginning is put before the next read, bytes; the frame splitter
#: collects longer frames.
CUT_BYTES_MAX = cython.declare(cython.int, 128 * 1024)


@cython.cclass
class FastHandler:
    """Takes one kind of request.

    A handler may keep facts about the broker as long as `path.iteration` is the same.
    """

    def take(self, path, body, body_bytes):
        """Handle the request in hand and write the answer to `path.out`; false leaves it untouched.

        A handler with `answers_directly` gives the answer to `path.protocol` instead. Steps that
        may fail come before the first step with an effect.
        """
        return False

    def hold_answers(self, protocol, answers, count):
        """Keep `count` answers to a connection until the disk has the messages."""
        raise NotImplementedError


@cython.cclass
class FastPath:
    """Takes requests from the read buffer of one server; `handlers` are by request code.

    With a guard only requests that pass the guard are taken.
    """

    def __init__(self, read_buffer: object, handlers: dict, guard: Guard | None = None):
        self._guard = guard
        self._view = read_buffer
        self._bytes = read_buffer
        self._buffer = cython.cast(cython.pointer(uint8_t), cython.address(self._bytes[0]))
        self._buffer_bytes = self._bytes.shape[0]
        code: cython.int
        if len(handlers) > HANDLERS_MAX:
            raise ValueError(f"the kernel has handlers for {HANDLERS_MAX} request codes at most")
        for code in handlers:
            self._codes[self._handler_count] = code
            self._handler_count += 1
        self._handlers = list(handlers.values())
        self.header = NamedHeader() if guard is None else guard.header
        self.out = Memory()

    def end_iteration(self) -> None:
        """End the event-loop iteration; the next read begins another."""
        self._began = 0.0

    def lend_to(self, writer: Writer | None) -> None:
        """Let a writer thread send the answers of busy iterations from now on, or none."""
        self._settle()
        self._writer = writer

    def flush(self, dirty: list) -> None:
        """Write to all dirty connections, by the writer thread when they are many."""
        writer: Writer = self._writer
        protocol: FastProtocol
        state: ConnectionState
        self._settle()
        if writer is None or not _is_worth_lending(dirty):
            for each in dirty:
                each.flush()
            return
        try:
            for each in dirty:
                if isinstance(each, FastProtocol):
                    protocol = each
                    state = protocol.state
                    if state.out and not writer.is_full and protocol._is_caught_up():
                        state.idle_checks = 0
                        state.is_lent = True
                        writer.add(protocol, protocol._socket, state.take_answers())
                        continue
                each.flush()
        finally:
            writer.begin()
        if not self._is_settling_scheduled:
            self._is_settling_scheduled = True
            asyncio.get_running_loop().call_later(SETTLED_S, self._settle_as_scheduled)

    def _settle_as_scheduled(self) -> None:
        """Collect the last batch of a burst, so that a slow reader gets the rest of its answer."""
        self._is_settling_scheduled = False
        self._settle()

    def _settle(self):
        """Lent → kept, for all connections of the writer's batch; write the unsent rest."""
        protocol: FastProtocol
        if self._writer is None or not self._writer.is_busy:
            return 0
        batch: list = self._writer.join()
        for protocol, _ in batch:
            protocol.state.is_lent = False
        for protocol, rest in batch:
            if len(rest):
                protocol._write_rest(rest)
        return 0

    def take(self, protocol, start, end, pause_at):
        """Take requests from bytes `start` … `end` of the buffer; return the end of the last one.

        With many requests `take` pauses behind `pause_at`; 0 never pauses.
        """
        frame: cython.pointer(uint8_t) = self._buffer + start
        stop: cython.pointer(uint8_t) = self._buffer + end
        body: cython.pointer(uint8_t)
        size: uint32_t
        word: uint32_t
        count: cython.int = 0
        header: Header = self.header
        guard: Guard = self._guard
        state: ConnectionState = protocol.state
        previous: FastHandler = None
        handler: FastHandler
        self.protocol = protocol
        self.is_paused = False
        self.waited_ms = (monotonic_s() - state.arrived) * 1000
        try:
            while stop - frame >= FRAME_HEAD:
                size = get32(frame)
                word = get32(frame + LENGTH_BYTES)
                if size > FRAME_MAX or stop - frame - LENGTH_BYTES < size:
                    break
                if size < LENGTH_BYTES or word >> 24 or word > size - LENGTH_BYTES:
                    break
                if not header.read(frame + FRAME_HEAD, word):
                    break
                handler = self._handler_of(header.code)
                if handler is None:
                    break
                body = frame + FRAME_HEAD + word
                if guard is not None and not guard.passes(
                    protocol.address, body, size - LENGTH_BYTES - word
                ):
                    break
                if (
                    count
                    and handler is not previous
                    and (
                        handler.waits_for_disk
                        or previous.waits_for_disk
                        or handler.answers_directly
                    )
                ):
                    self._deliver(previous, count)
                    count = 0
                previous = handler
                if not handler.take(self, body, size - LENGTH_BYTES - word):
                    break
                count += not handler.answers_directly
                frame += LENGTH_BYTES + size
                if state.out_bytes + self.out.count >= protocol._high_water_bytes:
                    break
                if handler.waits_for_disk:
                    if state.held + count >= protocol._in_flight_max:
                        break
                elif pause_at and count >= PAUSE_COUNT_MIN and frame - self._buffer >= pause_at:
                    self.is_paused = True
                    break
        except BaseException:
            # Handlers must ask their shells again: the iteration's facts may be out of date.
            self.iteration += 1
            raise
        finally:
            if count:
                self._deliver(previous, count)
            self.protocol = None
        return frame - self._buffer

    def _handler_of(self, code):
        i: cython.int
        for i in range(self._handler_count):
            if self._codes[i] == code:
                return self._handlers[i]
        return None

    def _deliver(self, handler, count):
        """Give `count` answers of a handler to the connection."""
        answers: bytes = self.out.take()
        if not len(answers):
            # One-way notices have no answer.
            return 0
        if handler.waits_for_disk:
            handler.hold_answers(self.protocol, answers, count)
            self.protocol.state.held += count
        else:
            self.protocol.add_answers(answers)
        return 0


@cython.cclass
class FastProtocol:
    """Reads and writes of one connection, in front of `connection`, which does everything else.

    asyncio calls a subclass, which forwards the other callbacks. Both share `state`.
    """

    def __init__(self, path: FastPath, connection: object, iteration: object):
        limits = connection.limits
        self.connection = connection
        self.state = connection.state
        self.peer_record = b""
        self.address = b""
        self._path = path
        self._iteration = iteration
        self._dirty = iteration.dirty
        self._in_flight_max = limits.in_flight_max
        self._high_water_bytes = limits.write_high_water_bytes
        self._begin = b""
        self._socket = -1

    def opened(self, transport: object, descriptor: cython.int) -> None:
        """The connection is open; a descriptor of -1 leaves all writes to the transport.

        The transport closes the descriptor after `connection_lost`.
        """
        self._transport = transport
        self._socket = descriptor
        self.peer_record = self.connection.peer_record
        self.address = self.connection.peer_host.encode()
        self.local_port = self.connection.local_port

    def settle(self) -> None:
        """Wait until the writer thread has no answers of this connection."""
        if self.state.is_lent:
            self._path._settle()

    def get_buffer(self, sizehint: cython.Py_ssize_t):
        """Copy the beginning of a frame into the read buffer; return the buffer behind it."""
        count: cython.Py_ssize_t = len(self._begin)
        if count == 0:
            return self._path._view
        memcpy(self._path._buffer, PyBytes_AS_STRING(self._begin), count)
        return self._path._view[count:]

    def buffer_updated(self, nbytes: cython.Py_ssize_t):
        """Bytes have arrived in the read buffer."""
        path: FastPath = self._path
        state: ConnectionState = self.state
        end: int64_t = len(self._begin) + nbytes
        start: int64_t = 0
        if state.is_closing:
            return
        if path._began == 0.0:
            path.iteration += 1
            path._began = self._iteration.begin()
        state.arrived = path._began
        path.sent_bytes = 0
        if state.has_receive_backlog or end == path._buffer_bytes:
            self.connection.date_back(nbytes)
        if state.held < self._in_flight_max and not (state.is_collecting or state.is_stalled):
            start = path.take(self, 0, end, end // 2 if end >= PAUSE_BYTES_MIN else 0)
            if path.is_paused:
                # The peer works on the first answers while the other requests are handled.
                self._iteration.end()
                if state.is_closing:
                    return
                path.iteration += 1
                path._began = self._iteration.begin()
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
                return
        path.iteration += 1
        self._begin = b""
        self._begin = self.connection.take_rest(path._view[start:end])

    def flush(self) -> None:
        """Write all answers of this iteration in one piece."""
        state: ConnectionState = self.state
        if state.is_closing or state.is_stalled or state.is_write_paused or not state.out:
            self.connection.flush()
            return
        state.idle_checks = 0
        if state.is_lent:
            self._path._settle()
        self._transport.write(state.take_answers())
        if state.is_write_paused:
            self.connection.cut_off_slow_reader()

    def drop_answers(self) -> None:
        """Close the connection without sending the answers of this iteration."""
        self.connection.drop_answers()

    def add_answers(self, answers):
        """Have frames written at the end of the iteration."""
        state: ConnectionState = self.state
        if state.is_closed:
            return 0
        state.out.append(answers)
        if state.out_bytes + len(answers) >= self._high_water_bytes:
            self.connection.count_out(len(answers))
            return 0
        state.out_bytes += len(answers)
        if state.mark_dirty():
            if self._path._began == 0.0:
                self._iteration.mark_dirty(self)
            else:
                self._dirty.append(self)
        return 0

    def _is_caught_up(self):
        """Return true for an open connection whose earlier answers are all sent."""
        state: ConnectionState = self.state
        if self._socket < 0 or state.is_closing or state.is_stalled or state.is_write_paused:
            return False
        return not (self._transport.get_write_buffer_size() or self._transport.is_closing())

    def free_descriptor(self):
        """Return the descriptor of a socket without unsent answers, for one answer; or -1."""
        if self.state.is_lent or self.state.out or not self._is_caught_up():
            return -1
        return self._socket

    def _write_rest(self, rest):
        """Write the bytes that the system did not take from the writer thread."""
        if self.state.is_closed or self._transport.is_closing():
            return 0
        self._transport.write(rest)
        if self.state.is_write_paused:
            self.connection.cut_off_slow_reader()
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_worth_lending(dirty: list) -> cython.bint:
    """Return true when `dirty` connections have many bytes to send."""
    protocol: FastProtocol
    missing: int64_t = LENT_MEAN_BYTES_MIN * len(dirty)
    if len(dirty) < LENT_CONNECTIONS_MIN:
        return False
    for each in dirty:
        if isinstance(each, FastProtocol):
            protocol = each
            missing -= protocol.state.out_bytes
    return missing <= 0


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
