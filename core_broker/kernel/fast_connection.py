# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The connections of the compiled fast path, and the writes of their answers.

    FastConnection   one per connection: collects answers, and sends them at the iteration's end
    FastWrites       one per server: the end of an iteration, and the writer thread

Answers go straight to the socket while the transport has no unsent bytes; the transport gets what
the socket does not accept, and all answers of a connection with TLS.
"""

import asyncio

import cython
from cython.cimports.core_broker.kernel.connection_state import ConnectionState
from cython.cimports.core_broker.kernel.fast_connection import take_only
from cython.cimports.core_broker.kernel.writer import MSG_DONTWAIT, MSG_NOSIGNAL, Writer, send
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int64_t

#: Minimum connections with answers, and minimum mean bytes of answers, for the writer thread: the
#: event loop sends shorter answers before the thread is awake.
LENT_CONNECTIONS_MIN = cython.declare(cython.int, 4)
LENT_MEAN_BYTES_MIN = cython.declare(cython.int, 512)
#: Maximum delay until the event loop collects a batch of the writer thread, s; each busy iteration
#: collects the previous batch.
SETTLED_S = cython.declare(cython.double, 0.002)


@cython.cclass
class FastWrites:
    """Writes the answers of an iteration to all connections."""

    def end_iteration(self) -> None:
        """End the event-loop iteration; the next read begins another."""
        self.began = 0.0
        self.is_end_coming = False

    def lend_to(self, writer: Writer | None) -> None:
        """Let a writer thread send the answers of busy iterations from now on, or none."""
        self.settle()
        self._writer = writer

    def flush(self, dirty: list) -> None:
        """Write to all dirty connections, by the writer thread when they are many."""
        writer: Writer = self._writer
        connection: FastConnection
        state: ConnectionState
        self.settle()
        is_lending: cython.bint = writer is not None and _is_worth_lending(dirty)
        try:
            for each in dirty:
                if not isinstance(each, FastConnection):
                    each.flush()
                    continue
                connection = each
                state = connection.state
                if is_lending and state.out and not writer.is_full and connection._is_caught_up():
                    state.idle_checks = 0
                    state.is_lent = True
                    writer.add(connection, connection._socket, connection._take_answers())
                else:
                    connection.write_answers()
        finally:
            if is_lending:
                writer.begin()
        if is_lending and not self._is_settling_scheduled:
            self._is_settling_scheduled = True
            asyncio.get_running_loop().call_later(SETTLED_S, self._settle_as_scheduled)

    def _settle_as_scheduled(self) -> None:
        """Collect the last batch of a burst, so that a slow reader gets the rest of its answer."""
        self._is_settling_scheduled = False
        self.settle()

    def settle(self):
        """Lent → kept, for all connections of the writer's batch; write the unsent rest."""
        connection: FastConnection
        if self._writer is None or not self._writer.is_busy:
            return 0
        batch: list = self._writer.join()
        for connection, _ in batch:
            connection.state.is_lent = False
        for connection, rest in batch:
            if len(rest):
                connection._write_rest(rest)
        return 0


@cython.cclass
class FastConnection:
    """The writes of one connection, in front of `connection`; both share `state`."""

    def __init__(self, writes: FastWrites, connection: object, iteration: object):
        limits = connection.limits
        self.connection = connection
        self.state = connection.state
        self.peer_record = b""
        self.address = b""
        self._writes = writes
        self._iteration = iteration
        self._dirty = iteration.dirty
        self._in_flight_max = limits.in_flight_max
        self._high_water_bytes = limits.write_high_water_bytes
        self._socket = -1

    def opened(self, transport: object, descriptor: cython.int) -> None:
        """The connection is open; a descriptor of -1 leaves all writes to the transport.

        The transport closes the descriptor after `connection_lost`. Bytes that others give to the
        transport are announced by `leave_to_transport`.
        """
        self._transport = transport
        self._socket = descriptor
        self.peer_record = self.connection.peer_record
        self.address = self.connection.peer_host.encode()
        self.local_port = self.connection.local_port

    def settle(self) -> None:
        """Wait until the writer thread has no answers of this connection."""
        if self.state.is_lent:
            self._writes.settle()

    def leave_to_transport(self) -> None:
        """The transport gets bytes next, behind all earlier answers."""
        self.settle()
        self._may_have_unsent = True

    def flush(self) -> None:
        """Write all answers of this iteration in one piece."""
        self.write_answers()

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
            if self._writes.began == 0.0 and not self._writes.is_end_coming:
                self._writes.is_end_coming = True
                self._iteration.mark_dirty(self)
            else:
                self._dirty.append(self)
        return 0

    def write_answers(self):
        """Write all answers of this iteration in one piece."""
        state: ConnectionState = self.state
        answers: bytes
        sent: int64_t
        if state.is_closing or state.is_stalled or state.is_write_paused or not state.out:
            self.connection.flush()
            return 0
        state.idle_checks = 0
        if state.is_lent:
            self._writes.settle()
        answers = self._take_answers()
        if self._is_caught_up():
            # After an error of the socket the transport gets all bytes, and reports the error.
            sent = send(
                self._socket, PyBytes_AS_STRING(answers), len(answers), MSG_DONTWAIT | MSG_NOSIGNAL
            )
            if sent == len(answers):
                return 0
            if sent > 0:
                answers = answers[sent:]
        return self._write_rest(answers)

    def _take_answers(self):
        """Dirty → clean; return the answers. Most iterations have one answer per connection."""
        state: ConnectionState = self.state
        if len(state.out) != 1:
            return state.take_answers()
        state.out_bytes = 0
        state.is_dirty = False
        return take_only(state.out)

    def _is_caught_up(self):
        """Return true for an open connection whose earlier answers are all sent."""
        state: ConnectionState = self.state
        if self._socket < 0 or state.is_closing or state.is_stalled or state.is_write_paused:
            return False
        if self._may_have_unsent:
            self._may_have_unsent = (
                self._transport.get_write_buffer_size() or self._transport.is_closing()
            )
        return not self._may_have_unsent

    def free_descriptor(self):
        """Return the descriptor of a socket without unsent answers, for one answer; or -1."""
        if self.state.is_lent or self.state.out or not self._is_caught_up():
            return -1
        return self._socket

    def _write_rest(self, rest):
        """Give the transport the bytes that the socket did not accept."""
        if self.state.is_closed or self._transport.is_closing():
            return 0
        self._may_have_unsent = True
        self._transport.write(rest)
        if self.state.is_write_paused:
            self.connection.cut_off_slow_reader()
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_worth_lending(dirty: list) -> cython.bint:
    """Return true when `dirty` connections have many bytes to send."""
    connection: FastConnection
    missing: int64_t = LENT_MEAN_BYTES_MIN * len(dirty)
    if len(dirty) < LENT_CONNECTIONS_MIN:
        return False
    for each in dirty:
        if isinstance(each, FastConnection):
            connection = each
            missing -= connection.state.out_bytes
    return missing <= 0
