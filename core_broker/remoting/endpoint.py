"""What a server and a client share: their connections, the read buffer, and the end of the turn.

A turn is one round of the event loop; a read that brings very many requests ends one half-way.
Everything that arrives in it is handled to completion and its answers pile up per connection. When
the turn ends, `before_write` runs once (a broker writes what it staged for its files there), then
each connection that has answers gets one write. When `before_write` fails, those answers are
dropped and their connections closed: nothing that was not written is ever acknowledged.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_broker.errors import GantryError, RequestRefused
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from core_broker.remoting.connection import Connection

#: Handles a request to completion; None when it is answered later, or never as a notice.
Dispatch = Callable[["Connection", RemotingCommand], RemotingCommand | None]

#: One buffer takes the reads of all connections; a cut-off frame is copied out of it.
READ_BUFFER_BYTES = 256 * 1024

#: A connection is looked at this many times before it counts as idle.
_IDLE_LOOKS = 4
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
    """Owner of connections; its methods are called by them and by subclasses only."""

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        name: str,
        limits: Limits,
        before_write: Callable[[], None] | None = None,
        on_close: "Callable[[Connection], None] | None" = None,
    ) -> None:
        self.name = name
        self.dispatch = dispatch
        self.limits = limits
        self.counters = Counters()
        self.connections: set[Connection] = set()
        self.unfinished_bytes = 0
        #: Peers whose write buffers are over the high-water mark.
        self.slow_readers: set[Connection] = set()
        #: When the turn under way began to read, in seconds of the monotonic clock; 0 outside.
        self.turn_began = 0.0
        self.read_buffer = memoryview(bytearray(READ_BUFFER_BYTES))
        #: Writes to the connections that have answers at the end of a turn.
        self.flush: Callable[[list[Connection]], None] = _flush_each
        #: Hears when a turn is over.
        self.on_turn_end: Callable[[], None] = _nothing
        #: Hears that the last connection of a server that ends is gone.
        self.on_closed: Callable[[], None] = _nothing
        #: Hears of peers that read again after they did not.
        self.on_resume: Callable[[Connection], None] = _nothing
        self._before_write = before_write
        self._on_close = on_close
        #: Connections that have something to write at the end of this turn; never another list.
        self.dirty: list[Connection] = []
        self._is_turn_ending = False
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_lost = asyncio.Event()

    def opened(self, connection: "Connection") -> bool:
        """Take a new connection in; False when there are too many already."""
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
        """Forget a connection and tell whoever wants to know."""
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

    def begin_turn(self) -> float:
        """Return when this turn began to read; what is read in it waited since then at least."""
        if not self.turn_began:
            # Not the loop's own clock: uvloop's stands still while a turn runs.
            self.turn_began = time.monotonic()
            self._end_turn_soon()
        return self.turn_began

    @property
    def unsent_bytes(self) -> int:
        """What waits in the write buffers of the peers that read too slowly."""
        return sum(connection.unsent_bytes for connection in self.slow_readers)

    def mark_dirty(self, connection: "Connection") -> None:
        """The connection has something to write at the end of this turn."""
        self.dirty.append(connection)
        self._end_turn_soon()

    def _end_turn_soon(self) -> None:
        if not self._is_turn_ending:
            self._is_turn_ending = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def failure(
        self, connection: "Connection", request: RemotingCommand, error: Exception
    ) -> RemotingCommand:
        """The answer to a request whose handling raised."""
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

    def _end_turn(self) -> None:
        self._is_turn_ending = False
        self.end_turn()

    def end_turn(self) -> None:
        """Store and answer what this turn has brought so far; what still comes is another turn."""
        self.turn_began = 0.0
        self.on_turn_end()
        dirty = self.dirty.copy()
        self.dirty.clear()
        if dirty and self._before_write is not None:
            try:
                self._before_write()
            except Exception:
                log.exception("%s: dropping the answers of %d peers", self.name, len(dirty))
                self.counters.unstored += len(dirty)
                for connection in dirty:
                    connection.drop_answers()
                return
        self.flush(dirty)

    def _sweep(self) -> None:
        """Close what has been quiet for too long; runs a few times per idle limit."""
        for connection in list(self.connections):
            if connection.looked_at() > _IDLE_LOOKS:
                self.counters.idle += 1
                connection.abort("no traffic")
        interval_s = self.limits.idle_close_s / _IDLE_LOOKS
        self._sweeper = asyncio.get_running_loop().call_later(interval_s, self._sweep)

    async def _close_all(self, reason: str) -> None:
        """Close every connection, at once those that do not go in time."""
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


def _flush_each(dirty: "list[Connection]") -> None:
    for connection in dirty:
        connection.flush()


def _nothing(*_: object) -> None:
    """Nobody wants to know."""
