"""The broker's step at the end of an event-loop iteration (a turn): write, publish, wake pulls.

    1. the store writes the staged messages of the turn    all of them, or none
    2. SYNC_FLUSH producers are queued for the flush       SYNC_FLUSH only
    3. held pulls that the new messages satisfy are answered

The server calls `end` before the write of the turn's answers, and drops the answers after an error.
One-way messages and later answers have no such call, so their handlers call `end_soon`.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from core_broker.errors import StoreReadOnly
from core_broker.store import MessageStore

log = logging.getLogger(__name__)

#: Callback with True once a message is on disk, or False after a failure.
Flushed = Callable[[bool], None]
#: A callback and the number of producers behind the callback.
_Wait = tuple[Flushed, int]


class Turn:
    """Ends turns. `wake` answers ready pulls."""

    def __init__(self, store: MessageStore, wake: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake
        self._flush_waits: list[_Wait] = []
        #: Number of producers waiting for the disk.
        self.flush_waiters = 0
        self._is_ending_soon = False
        self._failure: StoreReadOnly | None = None
        #: Begin and end of the last write to the log, in seconds of the monotonic clock.
        self.last_write = (0.0, 0.0)

    def when_flushed(self, flushed: Flushed) -> None:
        """Call `flushed` once the messages of this turn are on disk, or after a failure."""
        self.line_up(flushed, 1)
        self.end_soon()

    def line_up(self, flushed: Flushed, producers: int) -> None:
        """Like `when_flushed`, for several producers; the caller makes sure that the turn ends."""
        self._flush_waits.append((flushed, producers))
        self.flush_waiters += producers

    def end_soon(self) -> None:
        """Schedule the end of this turn, for a turn without answers."""
        if not self._is_ending_soon:
            self._is_ending_soon = True
            asyncio.get_running_loop().call_soon(self._end_alone)

    def end(self) -> None:
        """End the turn; raises StoreReadOnly when the messages of the turn are not stored."""
        if self._failure is not None:
            raise self._failure
        self._store.stage_pending()
        waits, self._flush_waits = self._flush_waits, []
        began = time.monotonic()
        try:
            self._store.write_staged()
            self.last_write = (began, time.monotonic())
        except StoreReadOnly:
            self._flushed(waits, False)
            raise
        if waits:
            end = self._store.max_offset_physical
            self._store.on_flushed(end, partial(self._flushed, waits))
        self._wake()

    def _flushed(self, waits: list[_Wait], is_on_disk: bool) -> None:
        for flushed, producers in waits:
            self.flush_waiters -= producers
            flushed(is_on_disk)

    def _end_alone(self) -> None:
        self._is_ending_soon = False
        try:
            self.end()
        except StoreReadOnly as error:
            log.error("unwritten messages are lost: %s", error)  # noqa: TRY400 - known cause
            # The server may end the same turn next, and must then drop the turn's answers.
            self._failure = error
            asyncio.get_running_loop().call_soon(self._forget_failure)

    def _forget_failure(self) -> None:
        self._failure = None
