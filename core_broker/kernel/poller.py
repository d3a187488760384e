# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Reads of the connections without TLS, by an epoll instance of the kernel's own.

The event loop watches the descriptor of the epoll instance like that of a single connection, and
calls `run` while connections are readable. A call runs rounds: one read per readable connection,
without Python code between the reads, then the end of the iteration, which writes to the log and
sends the answers. After the reads of a round with several connections the poller polls again: more
requests in one iteration share its end. Peers that work on their next requests meanwhile are in the
next round.

epoll is level-triggered: bytes that a read leaves are reported again, behind the bytes of the other
connections. So a connection with ever more bytes delays the other connections by one read.
"""

import cython
from cython.cimports.core_broker.kernel.clock import monotonic_s
from cython.cimports.core_broker.kernel.fast_path import FastPath
from cython.cimports.core_broker.kernel.fast_protocol import FastProtocol
from cython.cimports.core_broker.kernel.poller import (
    EPOLL_CLOEXEC,
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    EPOLLIN,
    EVENTS_MAX,
    MSG_DONTWAIT,
    epoll_create1,
    epoll_ctl,
    epoll_event,
    epoll_wait,
    recv,
)
from cython.cimports.cpython.exc import PyErr_SetFromErrno
from cython.cimports.libc.errno import EAGAIN, EINTR, errno
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.posix.unistd import close

#: Time after which no further round begins, and the event loop runs its other callbacks, s.
ROUNDS_S_MAX = cython.declare(cython.double, 0.002)
#: Minimum connections of a poll for another poll in the same round.
POLL_AGAIN_MIN = cython.declare(cython.int, 4)
#: Bytes of a round behind which the round has no further poll.
ROUND_BYTES_MAX = cython.declare(int64_t, 256 * 1024)
#: Bits of a descriptor in the data of an event; the registration is in the upper half.
DESCRIPTOR_BITS = cython.declare(cython.int, 32)
LOWER_HALF = cython.declare(uint64_t, 0xFFFFFFFF)


@cython.cclass
class Poller:
    """Reads from connections between `add` and `remove`; OSError where the system has no epoll.

    `iteration` is the remoting.Iteration of the server. `owner.ended(protocol)` is called at the
    end of a stream, `owner.failed(protocol, error)` after an error of a socket or of a handler;
    the poller reads no more from such a connection.
    """

    def __cinit__(self):
        self._epoll = -1

    def __init__(self, path: FastPath, iteration: object, owner: object):
        self._path = path
        self._iteration = iteration
        self._owner = owner
        self._protocols = []
        self._epoll = epoll_create1(EPOLL_CLOEXEC)
        if self._epoll < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self._epoll >= 0:
            close(self._epoll)

    def fileno(self) -> int:
        """Return the descriptor that is readable while connections are."""
        return self._epoll

    def add(self, protocol: FastProtocol) -> bool:
        """Read from a connection from now on; False when the system refuses."""
        event: epoll_event
        descriptor: cython.int = protocol._socket
        if descriptor < 0:
            return False
        # An event in hand may belong to an earlier registration: of this connection before a pause,
        # or of a connection that had the same descriptor.
        self._last_registration += 1
        if self._last_registration == 0:
            self._last_registration = 1
        event.events = EPOLLIN
        event.data.u64 = (
            cython.cast(uint64_t, self._last_registration) << DESCRIPTOR_BITS
        ) | cython.cast(uint64_t, descriptor)
        if epoll_ctl(self._epoll, EPOLL_CTL_ADD, descriptor, cython.address(event)):
            return False
        while len(self._protocols) <= descriptor:
            self._protocols.append(None)
        self._protocols[descriptor] = protocol
        protocol._registration = self._last_registration
        self.connections += 1
        return True

    def remove(self, protocol: FastProtocol) -> bool:
        """Read no more from a connection; False when the poller does not read from it."""
        event: epoll_event
        if protocol._registration == 0:
            return False
        protocol._registration = 0
        self._protocols[protocol._socket] = None
        self.connections -= 1
        epoll_ctl(self._epoll, EPOLL_CTL_DEL, protocol._socket, cython.address(event))
        return True

    def run(self) -> None:
        """Run rounds until no connection is readable, or ROUNDS_S_MAX is over."""
        self._end = monotonic_s() + ROUNDS_S_MAX
        while self._poll() > 0:
            self.rounds += 1
            self._iteration.run(self.read_ready)
            if monotonic_s() >= self._end:
                return

    def read_ready(self) -> None:
        """Read from the connections of the round, and from those that are readable by then.

        At most ROUND_BYTES_MAX and the bytes of one more poll, so that the messages of a round fit
        into the memory of the store; no further poll once the time of `run` is over.
        """
        self._round_bytes = 0
        while True:
            self._read_each()
            if self._count < POLL_AGAIN_MIN or self._round_bytes >= ROUND_BYTES_MAX:
                return
            if monotonic_s() >= self._end:
                return
            self._count = epoll_wait(self._epoll, self._events, EVENTS_MAX, 0)

    def _read_each(self):
        """Read once from each connection of the last poll."""
        protocol: FastProtocol
        i: cython.int
        for i in range(self._count):
            # What an earlier connection of the round has asked for may have closed this one.
            protocol = self._protocol_of(self._events[i].data.u64)
            if protocol is None:
                continue
            try:
                self._read(protocol)
            except BaseException as error:
                self.remove(protocol)
                self._owner.failed(protocol, error)
                if not isinstance(error, Exception):
                    raise
        return 0

    def _poll(self):
        """Find the readable connections, without waiting."""
        with cython.nogil:  # threads may run between two rounds
            self._count = epoll_wait(self._epoll, self._events, EVENTS_MAX, 0)
        return max(self._count, 0)

    def _protocol_of(self, ready):
        """Return the connection of an event; None for an earlier registration."""
        descriptor: cython.int = cython.cast(cython.int, ready & LOWER_HALF)
        protocol: FastProtocol = self._protocols[descriptor]
        if protocol is None or protocol._registration != ready >> DESCRIPTOR_BITS:
            return None
        return protocol

    def _read(self, protocol):
        """Read once, as much as the read buffer holds."""
        path: FastPath = self._path
        begin: int64_t = protocol.restore_begin()
        count: int64_t = recv(
            protocol._socket, path._buffer + begin, path._buffer_bytes - begin, MSG_DONTWAIT
        )
        self.reads += 1
        if count > 0:
            self._round_bytes += count
            protocol.received(count)
        elif count == 0:
            self.remove(protocol)
            self._owner.ended(protocol)
        elif errno != EAGAIN and errno != EINTR:
            PyErr_SetFromErrno(OSError)
        return 0
