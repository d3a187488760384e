"""One iteration of the event loop as an endpoint sees it: its begin, its answers, its end.

Requests that arrive in an iteration are handled to completion, and their answers pile up per
connection. At the end the steps of IterationEnd run in order, and each connection with answers gets
one write. A read that brings very many requests ends one iteration half-way and begins another: the
peer works on the first answers while the other requests are handled.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

Step = Callable[[], None]


class AnswerWriter(Protocol):
    """A connection, or its compiled fast path, with answers to write."""

    def flush(self) -> None:
        """Write all answers of the iteration in one piece."""

    def drop_answers(self) -> None:
        """Close the connection without sending the iteration's answers."""


def flush_each(writers: Sequence[AnswerWriter]) -> None:
    """Write to one connection after the other."""
    for writer in writers:
        writer.flush()


class IterationEnd(NamedTuple):
    """The end of an iteration as steps; each field runs after the field above it."""

    #: Run at the end of every iteration; must not raise.
    always: tuple[Step, ...] = ()
    #: Run when connections have answers. When a step raises, the answers are dropped and their
    #: connections closed: nothing is acknowledged that was not stored.
    before_write: tuple[Step, ...] = ()
    #: Writes to the connections that have answers.
    write: Callable[[list[AnswerWriter]], None] = flush_each


class Iteration:
    """The iteration under way.

    `on_unstored` gets the error of a step, and the number of connections whose answers are dropped.
    """

    def __init__(self, end: IterationEnd, on_unstored: Callable[[Exception, int], None]) -> None:
        #: Time of the first read, in seconds of the monotonic clock; 0 outside of an iteration.
        self.began = 0.0
        #: Connections with answers, in the order of their first answer; always the same list.
        self.dirty: list[AnswerWriter] = []
        self._end = end
        self._on_unstored = on_unstored
        self._is_end_scheduled = False

    def begin(self) -> float:
        """Begin an iteration unless one is under way, and return the time of its begin."""
        if not self.began:
            # The clock of uvloop stands still during an iteration, so time.monotonic() is read.
            self.began = time.monotonic()
            self._schedule_end()
        return self.began

    def mark_dirty(self, writer: AnswerWriter) -> None:
        """Have `writer` flushed at the end of the iteration."""
        self.dirty.append(writer)
        if not self._is_end_scheduled:
            self._schedule_end()

    def end(self) -> None:
        """Run the steps now; requests that are handled after this belong to another iteration."""
        self.began = 0.0
        for step in self._end.always:
            step()
        dirty = self.dirty.copy()
        self.dirty.clear()
        if dirty:
            try:
                for step in self._end.before_write:
                    step()
            except Exception as error:  # noqa: BLE001 - on_unstored logs it
                self._on_unstored(error, len(dirty))
                for writer in dirty:
                    writer.drop_answers()
                return
        self._end.write(dirty)

    def _schedule_end(self) -> None:
        if not self._is_end_scheduled:
            self._is_end_scheduled = True
            asyncio.get_running_loop().call_soon(self._end_as_scheduled)

    def _end_as_scheduled(self) -> None:
        self._is_end_scheduled = False
        self.end()
