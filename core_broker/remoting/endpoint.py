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
from core_broker.remoting.frame_faults import FrameFaultLog
from core_broker.remoting.iteration import Iteration, IterationEnd
from core_broker.remoting.loop_watchdog import LoopWatchdog

if TYPE_CHECKING:
    from core_broker.remoting.connection import Connection

#: Handles a request to completion; returns the answer, or None for a later or no answer.
Dispatch = Callable[["Connection", RemotingCommand], RemotingCommand | None]

#: Size of the buffer for the reads of all connections, bytes; unfinished frames are copied out.
READ_BUFFER_BYTES = 256 * 1024

#: Idle sweeps without traffic before a connection is closed.
_IDLE_CHECKS = 4
_CLOSE_TIMEOUT_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the resources that peers can consume."""

    #: Maximum connections; further connections are closed at once. Servers lower the limit to the
    #: available file descriptors.
    connections_max: int = 65_535
    #: Maximum frame length, bytes; a longer frame closes the connection.
    frame_bytes_max: int = FRAME_BYTES_MAX
    #: Maximum bytes of incomplete frames of all peers; the connection exceeding the sum is closed.
    unfinished_bytes_max: int = 256 * 1024 * 1024
    #: Maximum unanswered requests of one peer; further requests are answered SYSTEM_BUSY.
    in_flight_max: int = 8_192
    #: Maximum pending requests to one peer.
    asked_max: int = 65_535
    #: Unsent bytes above which reading from the peer pauses.
    write_high_water_bytes: int = 1024 * 1024
    #: Unsent bytes above which the connection is aborted.
    write_bytes_max: int = 64 * 1024 * 1024
    #: Maximum unsent bytes of all slow readers; the connection exceeding the sum is aborted.
    unsent_bytes_max: int = 256 * 1024 * 1024
    #: Time for a TLS handshake, seconds; maximum concurrent handshakes, one more closes the oldest.
    handshake_timeout_s: float = 10.0
    handshakes_max: int = 512
    #: Idle time before a connection is closed, seconds; sweeps are a quarter of the time apart.
    idle_close_s: float = 120.0
    #: Time for the slow path in one iteration of the event loop, seconds.
    iteration_budget_s: float = 0.01
    #: Bytes of an incomplete frame per sweep interval that do not count as traffic.
    drip_bytes_max: int = 4 * 1024


@dataclass(slots=True)
class Counters:
    """Events since the start, for metrics."""

    opened: int = 0
    #: Closed at once: too many connections.
    refused: int = 0
    #: Closed: malformed frames, oversize frames, too many incomplete frames.
    malformed: int = 0
    oversize: int = 0
    unfinished: int = 0
    #: Requests above the in-flight limit, and requests whose handler raised an error.
    busy: int = 0
    failed: int = 0
    #: Closed: peer does not read, no traffic, messages not stored.
    slow_readers: int = 0
    idle: int = 0
    unstored: int = 0
    #: Opened with TLS.
    tls_opened: int = 0
    #: Closed: failed or late TLS handshake, too many handshakes, no certificate, no TLS where TLS
    #: is required, no first byte.
    tls_failed: int = 0
    tls_displaced: int = 0
    tls_unavailable: int = 0
    plain_refused: int = 0
    silent: int = 0
    #: Answers without a pending request.
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
        self._frame_faults = FrameFaultLog(name)
        self.connections: set[Connection] = set()
        #: Bytes of all incomplete frames.
        self.unfinished_bytes = 0
        #: Connections whose transport buffers are over the high-water mark.
        self.slow_readers: set[Connection] = set()
        self.read_buffer = memoryview(bytearray(READ_BUFFER_BYTES))
        self.watchdog = LoopWatchdog(name)
        self.iteration = Iteration(
            iteration_end, self._count_unstored, self.watchdog, limits.iteration_budget_s
        )
        self._on_close = on_close
        self._on_resume = on_resume
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_lost = asyncio.Event()

    def opened(self, connection: "Connection") -> bool:
        """Add a new connection; returns False above the limit of connections."""
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
            log.exception("%s: clean-up of the connection to %s failed", self.name, connection.peer)

    def resumed(self, connection: "Connection") -> None:
        """Call `on_resume` for a peer that reads again."""
        if self._on_resume is not None:
            self._on_resume(connection)

    @property
    def unsent_bytes(self) -> int:
        """Bytes in the transport buffers of the slow readers."""
        return sum(connection.unsent_bytes for connection in self.slow_readers)

    def failure(
        self, connection: "Connection", request: RemotingCommand, error: Exception
    ) -> RemotingCommand:
        """The answer to a request whose handler raised an error."""
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
        """Count a connection closed because of a malformed or oversize frame."""
        if is_oversize:
            self.counters.oversize += 1
        else:
            self.counters.malformed += 1
        self._frame_faults.write(connection.peer, fault)

    def count_slow_reader(self, connection: "Connection") -> None:
        """Count a connection aborted because the peer does not read."""
        self.counters.slow_readers += 1
        log.warning("%s: aborting %s: the peer does not read", self.name, connection.peer)

    def _count_unstored(self, error: Exception, connections: int) -> None:
        log.error("%s: dropping the answers of %d peers", self.name, connections, exc_info=error)
        self.counters.unstored += connections

    def _sweep(self) -> None:
        """Close idle connections; runs a few times per idle limit."""
        self._frame_faults.end_minute()
        for connection in list(self.connections):
            if connection.check_idle() > _IDLE_CHECKS:
                self.counters.idle += 1
                connection.abort("no traffic")
        interval_s = self.limits.idle_close_s / _IDLE_CHECKS
        self._sweeper = asyncio.get_running_loop().call_later(interval_s, self._sweep)

    async def _close_all(self, reason: str) -> None:
        """Close every connection; abort connections still open after the timeout."""
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
