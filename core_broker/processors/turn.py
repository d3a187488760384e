"""The end of a turn of the event loop: what was put becomes stored, seen, and answered.

    1. the store writes what the turn put             all of it, or none
    2. producers that wait for the disk are lined up  SYNC_FLUSH only
    3. pulls that the new messages satisfy are answered

The server runs it before it sends the turn's answers, and sends none of them when it fails. One-way
messages and answers that come later do not make the server do so; they ask for it with `end_soon`.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from core_broker.errors import StoreReadOnly
from core_broker.store import MessageStore

log = logging.getLogger(__name__)

#: Hears whether a message is on disk.
Flushed = Callable[[bool], None]
#: That, and for how many producers.
_Wait = tuple[Flushed, int]


class Turn:
    """Ends turns. `wake` answers the held pulls that became ready."""

    def __init__(self, store: MessageStore, wake: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake
        self._flush_waits: list[_Wait] = []
        #: Producers that wait for the disk.
        self.flush_waiters = 0
        self._is_ending_soon = False
        self._failure: StoreReadOnly | None = None
        #: Begin and end of the last write to the log, in seconds of the monotonic clock.
        self.last_write = (0.0, 0.0)

    def when_flushed(self, flushed: Flushed) -> None:
        """Call back once what this turn put is on disk, or when that failed."""
        self.line_up(flushed, 1)
        self.end_soon()

    def line_up(self, flushed: Flushed, producers: int) -> None:
        """Do as `when_flushed` for several producers, of a turn that somebody ends."""
        self._flush_waits.append((flushed, producers))
        self.flush_waiters += producers

    def end_soon(self) -> None:
        """See to it that this turn is ended, even if it has nothing to answer."""
        if not self._is_ending_soon:
            self._is_ending_soon = True
            asyncio.get_running_loop().call_soon(self._end_alone)

    def end(self) -> None:
        """End the turn; raises StoreReadOnly when nothing of it is stored."""
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
            log.error("messages of this turn are lost: %s", error)  # noqa: TRY400 - known cause
            # The server may end the same turn right after this; it must not send its answers.
            self._failure = error
            asyncio.get_running_loop().call_soon(self._forget_failure)

    def _forget_failure(self) -> None:
        self._failure = None
