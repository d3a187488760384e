"""The common part of server and client: connections, limits, counters and the shared read buffer.

Iterations of the event loop and the steps at their end are in iteration.py.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_broker.errors import GantryError, ProtocolError, RequestRefused
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.iteration import Iteration, IterationEnd

if TYPE_CHECKING:
    from core_broker.remoting.connection import Connection

#: Handles a request to completion; returns None when the answer comes later, or to a notice never.
Dispatch = Callable[["Connection", RemotingCommand], RemotingCommand | None]

#: Size of the buffer for the reads of all connections, bytes; unfinished frames are copied out.
READ_BUFFER_BYTES = 256 * 1024

#: Idle sweeps that a connection survives without traffic.
_IDLE_CHECKS = 4
_CLOSE_TIMEOUT_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything that a peer could otherwise make grow without end."""

    #: Connections at the same time; one more is closed at once. Servers lower it to what the
    #: process has descriptors for.
    connections_max: int = 65_535
    #: A frame may claim this many bytes; a larger claim closes the connection.
    frame_bytes_max: int = FRAME_BYTES_MAX
    #: Bytes of frames that have not arrived whole, all peers together; the one that adds is closed.
    unfinished_bytes_max: int = 256 * 1024 * 1024
    #: Requests of one peer that wait for their answers; one more is answered SYSTEM_BUSY.
    in_flight_max: int = 8_192
    #: Our own questions to one peer that wait for their answers.
    asked_max: int = 65_535
    #: With this many bytes unsent nothing more is read from the peer.
    write_high_water_bytes: int = 1024 * 1024
    #: With this many bytes unsent the peer is cut off.
    write_bytes_max: int = 64 * 1024 * 1024
    #: Bytes unsent to all peers that read too slowly; the one that adds to them is cut off.
    unsent_bytes_max: int = 256 * 1024 * 1024
    #: A connection without traffic in either direction is closed after this, or a quarter more.
    idle_close_s: float = 120.0
    #: Less than this of an unfinished frame in a quarter of that time is no traffic.
    drip_bytes_max: int = 4 * 1024


@dataclass(slots=True)
class Counters:
    """What happened since the start, for metrics."""

    opened: int = 0
    #: Closed at once: too many connections.
    refused: int = 0
    #: Closed: bytes that are not the protocol, and the two size limits of frames.
    malformed: int = 0
    oversize: int = 0
    unfinished: int = 0
    #: Requests over the in-flight limit, and requests whose handling raised.
    busy: int = 0
    failed: int = 0
    #: Closed: does not read, says nothing, its answers could not be stored.
    slow_readers: int = 0
    idle: int = 0
    unstored: int = 0
    #: Answers that nobody waited for any more.
    late_answers: int = 0


class Endpoint:
    """Owner of connections; only connections and subclasses call its methods."""

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        name: str,
        limits: Limits,
        iteration_end: IterationEnd,
        on_close: "Callable[[Connection], None] | None" = None,
        on_resume: "Callable[[Connection], None] | None" = None,
    ) -> None:
        self.name = name
        self.dispatch = dispatch
        self.limits = limits
        self.counters = Counters()
        self.connections: set[Connection] = set()
        #: Bytes of all frames that are not whole yet.
        self.unfinished_bytes = 0
        #: Connections whose transport buffers are over the high-water mark.
        self.slow_readers: set[Connection] = set()
        self.read_buffer = memoryview(bytearray(READ_BUFFER_BYTES))
        self.iteration = Iteration(iteration_end, self._count_unstored)
        self._on_close = on_close
        self._on_resume = on_resume
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_lost = asyncio.Event()

    def opened(self, connection: "Connection") -> bool:
        """Add a new connection; returns False when there are too many already."""
        if len(self.connections) >= self.limits.connections_max:
            self.counters.refused += 1
            return False
        self._all_lost.clear()
        self.counters.opened += 1
        self.connections.add(connection)
        if self._sweeper is None:
            self._sweep()
        return True

    def lost(self, connection: "Connection") -> None:
        """Remove a connection and call `on_close`."""
        self.connections.discard(connection)
        self.slow_readers.discard(connection)
        if not self.connections:
            self._all_lost.set()
        if self._on_close is None:
            return
        try:
            self._on_close(connection)
        except Exception:
            log.exception("%s: cleaning up after %s failed", self.name, connection.peer)

    def resumed(self, connection: "Connection") -> None:
        """Call `on_resume` for a peer that reads its answers again."""
        if self._on_resume is not None:
            self._on_resume(connection)

    @property
    def unsent_bytes(self) -> int:
        """Bytes in the transport buffers of the slow readers."""
        return sum(connection.unsent_bytes for connection in self.slow_readers)

    def failure(
        self, connection: "Connection", request: RemotingCommand, error: Exception
    ) -> RemotingCommand:
        """Return the answer to a request whose handling raised."""
        if isinstance(error, RequestRefused):
            return RemotingCommand.response(error.code, error.remark)
        self.counters.failed += 1
        if isinstance(error, GantryError):
            log.info("%s: %s from %s: %s", self.name, request, connection.peer, error)
        else:
            log.error("%s: %s from %s failed", self.name, request, connection.peer, exc_info=error)
        return RemotingCommand.response(
            ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}"
        )

    def count_unfinished(self, connection: "Connection", change: int) -> None:
        """Add to the bytes of unfinished frames; aborts the connection that exceeds the limit."""
        self.unfinished_bytes += change
        if connection.state.unfinished_bytes and (
            self.unfinished_bytes > self.limits.unfinished_bytes_max
        ):
            self.counters.unfinished += 1
            log.warning("%s: closing %s: too many unfinished frames", self.name, connection.peer)
            connection.abort("too many unfinished frames")

    def count_malformed(
        self, connection: "Connection", fault: ProtocolError, *, is_oversize: bool
    ) -> None:
        """Count a byte stream that is not the protocol."""
        if is_oversize:
            self.counters.oversize += 1
        else:
            self.counters.malformed += 1
        log.warning("%s: closing %s: %s", self.name, connection.peer, fault)

    def count_slow_reader(self, connection: "Connection") -> None:
        """Count a connection that is cut off because its peer does not read."""
        self.counters.slow_readers += 1
        log.warning("%s: cutting off %s: it does not read", self.name, connection.peer)

    def _count_unstored(self, error: Exception, connections: int) -> None:
        log.error("%s: dropping the answers of %d peers", self.name, connections, exc_info=error)
        self.counters.unstored += connections

    def _sweep(self) -> None:
        """Close idle connections; runs a few times per idle limit."""
        for connection in list(self.connections):
            if connection.check_idle() > _IDLE_CHECKS:
                self.counters.idle += 1
                connection.abort("no traffic")
        interval_s = self.limits.idle_close_s / _IDLE_CHECKS
        self._sweeper = asyncio.get_running_loop().call_later(interval_s, self._sweep)

    async def _close_all(self, reason: str) -> None:
        """Close every connection; those still open after the timeout are aborted."""
        for connection in list(self.connections):
            connection.close(reason)
        await self._wait_all_lost()
        for connection in list(self.connections):
            connection.abort(reason)
        await self._wait_all_lost()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    async def _wait_all_lost(self) -> None:
        if self.connections:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await self._all_lost.wait()
