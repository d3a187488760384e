"""The watchdog of an event loop: names the steps that hold the loop longer than HOLD_MS_MAX.

While one step runs, every other peer waits. Measured steps: the requests of one read on the slow
path, the end of an iteration, periodic jobs, and as `callbacks` everything else, by the delay of a
timer. A hold is counted once, by its innermost measured step. The cause is `cpu` when the thread
computed for longer than the limit; else `wait`: for the disk, the GIL, or a CPU of a busy machine.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from core_broker.remoting.command import RemotingCommand

#: Maximum time of one step without a record, ms.
HOLD_MS_MAX = 50
#: Duration from which a hold of cause `wait` is a warning, ms. On a busy machine shorter waits are
#: frequent, and no defect of the program.
WAIT_WARNING_MS = 500
#: Minimum time between two log lines of one level, seconds.
LOG_INTERVAL_S = 10.0
#: Maximum number of different steps with a count of their own.
STEPS_MAX = 256

REQUEST = "request"
ANSWER = "answer"
FRAME = "frame"
READS = "reads"
ITERATION_END = "iteration_end"
CALLBACKS = "callbacks"

CPU = "cpu"
WAIT = "wait"

HOLD_S_MAX = HOLD_MS_MAX / 1000
#: Interval of the timer for `callbacks`: a hold of this time more than the limit is never missed.
_TICK_S = 0.05

log = logging.getLogger(__name__)


class Begin(NamedTuple):
    """The begin of a step: the monotonic clock, and the CPU time of the thread, both seconds."""

    wall: float
    cpu: float


class Step(NamedTuple):
    """A step with its cause; `request_code` is "" for steps that are no request."""

    step: str
    request_code: str
    cause: str


@dataclass(slots=True)
class Holds:
    """The holds of one step: their number, and the longest."""

    count: int = 0
    longest_ms: int = 0


@dataclass(slots=True)
class _LogLines:
    """The log lines of one level: the time of the next line, and the holds without a line."""

    next_s: float = 0.0
    suppressed: int = 0


class LoopWatchdog:
    """Counts holds; after `start` also writes log lines and measures `callbacks`.

    Waits below WAIT_WARNING_MS are logged as INFO, all other holds as WARNING. Only the event
    loop's thread calls the methods.
    """

    def __init__(
        self,
        name: str,
        clock_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.holds: dict[Step, Holds] = {}
        self._name = name
        self._clock_s = clock_s
        self._cpu_s = cpu_s
        self._counted = Begin(0.0, 0.0)
        self._latest = Begin(0.0, 0.0)
        self._tick = Begin(0.0, 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._lines = {level: _LogLines() for level in (logging.INFO, logging.WARNING)}

    def begin(self) -> Begin:
        """Return the begin of a step."""
        self._latest = begin = Begin(self._clock_s(), self._cpu_s())
        return begin

    def end(self, begin: Begin, step: str, request_code: int | None = None, peer: str = "") -> None:
        """End a step; a step over the limit is counted and logged."""
        if self._clock_s() - begin.wall > HOLD_S_MAX:
            self._record(begin, step, "" if request_code is None else str(request_code), peer)

    def held(self, begin_s: float, step: str) -> None:
        """End a step that took over HOLD_S_MAX from `begin_s` of the monotonic clock.

        For frequent steps: the caller reads the clock only, and the step's CPU time includes the
        time since the latest `begin`, which is at most _TICK_S old.
        """
        self._record(Begin(begin_s, self._latest.cpu), step, "", "")

    def counts(self) -> dict[tuple[str, str, str], int]:
        """Return the number of holds by step, request code and cause."""
        return {step: holds.count for step, holds in self.holds.items()}

    def varz(self) -> list[dict[str, str | int]]:
        """Return the holds with their longest times, for /varz."""
        return [
            step._asdict() | {"count": holds.count, "longest_ms": holds.longest_ms}
            for step, holds in self.holds.items()
        ]

    def start(self) -> None:
        """Write log lines from now on, and measure the delay of a timer."""
        if self._timer is None:
            self._tick = self.begin()
            self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._timer_fired)

    def stop(self) -> None:
        """Undo `start`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timer_fired(self) -> None:
        # The end of an iteration may be scheduled already, and names a hold better.
        asyncio.get_running_loop().call_soon(self._check_delay)

    def _check_delay(self) -> None:
        if self._timer is None:
            return
        due = Begin(self._tick.wall + _TICK_S, self._tick.cpu)
        self.end(due, CALLBACKS)
        self._tick = self.begin()
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._timer_fired)

    def _record(self, begin: Begin, step: str, request_code: str, peer: str) -> None:
        now = self.begin()
        held_s = now.wall - max(begin.wall, self._counted.wall)
        if held_s <= HOLD_S_MAX:
            return
        cpu_s = min(now.cpu - max(begin.cpu, self._counted.cpu), held_s)
        self._counted = now
        key = Step(step, request_code, CPU if cpu_s > HOLD_S_MAX else WAIT)
        if key not in self.holds and len(self.holds) >= STEPS_MAX:
            key = Step("other", "", key.cause)
        holds = self.holds.setdefault(key, Holds())
        holds.count += 1
        holds.longest_ms = max(holds.longest_ms, round(held_s * 1000))
        if self._timer is not None:
            self._log(now.wall, key, peer, held_s, cpu_s)

    def _log(self, now_s: float, step: Step, peer: str, held_s: float, cpu_s: float) -> None:
        is_short_wait = step.cause == WAIT and held_s * 1000 < WAIT_WARNING_MS
        level = logging.INFO if is_short_wait else logging.WARNING
        lines = self._lines[level]
        if now_s < lines.next_s:
            lines.suppressed += 1
            return
        lines.next_s = now_s + LOG_INTERVAL_S
        name = f"step {step.step}"
        if step.request_code:
            name = f"request code {step.request_code} of {peer}"
        more = f"; {lines.suppressed} more holds since the last line" if lines.suppressed else ""
        lines.suppressed = 0
        log.log(
            level,
            "%s: %s held the event loop for %.0f ms, of which %.0f ms CPU time%s",
            self._name,
            name,
            held_s * 1000,
            cpu_s * 1000,
            more,
        )


class RequestTimes:
    """The times of the commands of one read; `end` names the slowest one. One clock call each."""

    __slots__ = ("_begin", "_slowest", "_slowest_s", "_watchdog", "now_s")

    def __init__(self, watchdog: LoopWatchdog, begin: Begin) -> None:
        #: The end of the last command, in seconds of the monotonic clock.
        self.now_s = begin.wall
        self._watchdog = watchdog
        self._begin = begin
        self._slowest: RemotingCommand | None = None
        self._slowest_s = 0.0

    def handled(self, command: RemotingCommand) -> None:
        """End a command; the next one begins."""
        before_s, self.now_s = self.now_s, time.monotonic()
        if self.now_s - before_s >= self._slowest_s:
            self._slowest, self._slowest_s = command, self.now_s - before_s

    def end(self, peer: str) -> None:
        """End the read."""
        if self._slowest is not None and self.now_s - self._begin.wall > HOLD_S_MAX:
            step = ANSWER if self._slowest.is_response else REQUEST
            self._watchdog.end(self._begin, step, self._slowest.code, peer)
