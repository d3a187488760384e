"""The end of an event-loop iteration (a turn) in the broker: stage sends, write, wake pulls.

    stage_sends       the fast paths give their messages to the store
    write_messages    one write to the commit log, of all staged messages or of none; SYNC_FLUSH
                      producers wait for the flush
    wake_pulls        held pulls are answered from the new messages

The server runs the steps before the write of the turn's answers (broker/assembly.py), and drops the
answers after an error. Handlers of one-way messages and of later answers call `end_soon`, because
the server runs the steps only for a turn with answers.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from core_broker.errors import StoreReadOnly
from core_broker.store import MessageStore

log = logging.getLogger(__name__)

Step = Callable[[], None]
#: Callback with True once a message is on disk, or False after a failure.
Flushed = Callable[[bool], None]
#: A callback and the number of producers behind the callback.
_Wait = tuple[Flushed, int]


class Turn:
    """Ends turns. `wake_pulls` answers ready pulls."""

    def __init__(self, store: MessageStore, wake_pulls: Step) -> None:
        #: First and last step of the end: bound methods, because a wrapper costs a Python call.
        self.stage_sends: Step = store.stage_pending
        self.wake_pulls = wake_pulls
        self._store = store
        self._flush_waits: list[_Wait] = []
        #: Number of producers waiting for the disk.
        self.flush_waiters = 0
        self._is_ending_soon = False
        self._failure: StoreReadOnly | None = None
        #: Begin and end of the last write to the log, in seconds of the monotonic clock.
        self.last_write = (0.0, 0.0)

    def when_flushed(self, flushed: Flushed) -> None:
        """Call `flushed` once the messages of the turn are on disk, or after a failure."""
        self.add_flush_waiters(flushed, 1)
        self.end_soon()

    def add_flush_waiters(self, flushed: Flushed, producers: int) -> None:
        """Do the work of `when_flushed` for several producers; the caller ends the turn."""
        self._flush_waits.append((flushed, producers))
        self.flush_waiters += producers

    def end_soon(self) -> None:
        """Schedule the end of the turn, for a turn without answers."""
        if not self._is_ending_soon:
            self._is_ending_soon = True
            asyncio.get_running_loop().call_soon(self._end_alone)

    def end(self) -> None:
        """Run the steps outside of the server's pipeline, in the same order.

        Raises StoreReadOnly when the messages of the turn are not stored.
        """
        self.stage_sends()
        self.write_messages()
        self.wake_pulls()

    def write_messages(self) -> None:
        """Write the staged messages of the turn, and register the producers that wait for the disk.

        Raises StoreReadOnly when the messages of the turn are not stored.
        """
        if self._failure is not None:
            raise self._failure
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
            # The server may end the turn next, and must then drop the turn's answers.
            self._failure = error
            asyncio.get_running_loop().call_soon(self._forget_failure)

    def _forget_failure(self) -> None:
        self._failure = None
