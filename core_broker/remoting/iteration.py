"""The event-loop iteration of an endpoint: begin, queued answers, end.

Requests received in an iteration are handled to completion, and the answers are queued per
connection. At the end the steps of IterationEnd run in order, then every connection with answers
gets one write. A read with very many requests is split into two iterations, so that the peer can
process the first answers while the broker handles the remaining requests.

An iteration begins with a read of the event loop, and ends with a callback behind all reads; or
`run` reads and ends an iteration of its own. `run_answers` does the same for answers that waited.

The slow path handles requests for `budget_s` per iteration and at least one request per read; the
remaining requests of a connection wait for the next iteration, so that other peers are served.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from core_broker.remoting.loop_watchdog import HOLD_S_MAX, ITERATION_END, READS, LoopWatchdog

Step = Callable[[], None]


class AnswerWriter(Protocol):
    """A connection, or its compiled fast path, with answers to write."""

    def flush(self) -> None:
        """Write all answers of the iteration with one call."""

    def drop_answers(self) -> None:
        """Close the connection without sending the iteration's answers."""


def flush_each(writers: Sequence[AnswerWriter]) -> None:
    """Write the answers of the connections in order."""
    for writer in writers:
        writer.flush()


class IterationEnd(NamedTuple):
    """The steps at the end of an iteration; the fields run in the order of declaration."""

    #: Run at the end of every iteration; must not raise.
    always: tuple[Step, ...] = ()
    #: Run when connections have answers. When a step raises, the answers are dropped and the
    #: connections closed, because unstored messages must not be acknowledged.
    before_write: tuple[Step, ...] = ()
    #: Writes to the connections with answers.
    write: Callable[[list[AnswerWriter]], None] = flush_each


class Iteration:
    """The current iteration.

    `budget_s` is the time for the slow path in one iteration, and again in its end, seconds.
    `on_unstored` gets the error of a step, and the number of connections with dropped answers.
    """

    def __init__(
        self,
        end: IterationEnd,
        on_unstored: Callable[[Exception, int], None],
        watchdog: LoopWatchdog,
        budget_s: float,
    ) -> None:
        #: Time of the first read, in seconds of the monotonic clock; 0 outside of an iteration.
        self.began = 0.0
        #: End of the slow path's budget, in seconds of the monotonic clock.
        self.budget_end = 0.0
        #: Connections with answers, in the order of their first answer; never a new list object.
        self.dirty: list[AnswerWriter] = []
        self._end = end
        self._on_unstored = on_unstored
        self._watchdog = watchdog
        self._budget_s = budget_s
        self._is_end_scheduled = False
        self._is_ending = False

    def begin(self) -> float:
        """Begin an iteration, if needed; returns the begin of the current iteration."""
        if not self.began:
            # loop.time() of uvloop is constant during an iteration, so time.monotonic() is needed.
            self.began = time.monotonic()
            self.budget_end = self.began + self._budget_s
            self._schedule_end()
        return self.began

    def mark_dirty(self, writer: AnswerWriter) -> None:
        """Have `writer` flushed at the end of the iteration."""
        self.dirty.append(writer)
        if not self._is_end_scheduled:
            self._schedule_end()

    def run(self, reads: Step) -> None:
        """Run reads as an iteration of their own: end it at once, without waiting for the loop."""
        is_end_scheduled, self._is_end_scheduled = self._is_end_scheduled, True
        try:
            reads()
        finally:
            self._is_end_scheduled = is_end_scheduled
            self.end()

    def run_answers(self, step: Step) -> None:
        """Run a step that answers earlier requests, and send the answers at once.

        During an iteration the answers are sent with those of the iteration, or of the next one.
        """
        if self.began or self._is_ending:
            step()
        else:
            self.run(step)

    def end(self) -> None:
        """Run the steps now; later requests belong to the next iteration."""
        now = time.monotonic()
        if self.began and now - self.began > HOLD_S_MAX:
            self._watchdog.held(self.began, READS)
        self.began = 0.0
        self.budget_end = now + self._budget_s
        self._is_ending = True
        try:
            self._run_steps()
        finally:
            self._is_ending = False
        if time.monotonic() - now > HOLD_S_MAX:
            self._watchdog.held(now, ITERATION_END)

    def _run_steps(self) -> None:
        for step in self._end.always:
            step()
        dirty = self.dirty.copy()
        self.dirty.clear()
        if dirty:
            try:
                for step in self._end.before_write:
                    step()
            except Exception as error:  # noqa: BLE001 - on_unstored logs the error
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
