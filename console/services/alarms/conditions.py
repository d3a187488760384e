"""A value against a threshold, and what an episode does next. Pure.

An episode is pending while its condition is met for less than `for_s`, then fires, and resolves
after the condition has not been met for `clear_for_s`. Between the two thresholds of a condition,
an alarm stays as it is (`hold`). Without a known value it stays as it is for NO_DATA_MS.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

#: Time without a known value until an alarm resolves, ms: its object is gone.
NO_DATA_MS: Final = 15 * 60_000


class Seen(Enum):
    """The condition of a rule on one object now."""

    MET = "met"
    #: Neither met, nor enough below the threshold to resolve.
    HOLD = "hold"
    CLEAR = "clear"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """`above` or `below` a threshold; `clear_threshold` is where an alarm resolves."""

    comparison: str
    threshold: float
    clear_threshold: float | None = None

    def seen(self, value: float) -> Seen:
        """Compare a known value."""
        end = self.threshold if self.clear_threshold is None else self.clear_threshold
        if self.comparison == "above":
            if value > self.threshold:
                return Seen.MET
            return Seen.CLEAR if value <= end else Seen.HOLD
        if value < self.threshold:
            return Seen.MET
        return Seen.CLEAR if value >= end else Seen.HOLD


@dataclass(frozen=True, slots=True)
class Times:
    """The times of an open episode, ms."""

    state: Literal["pending", "firing"]
    begun_ms: int
    clear_since_ms: int | None
    seen_ms: int


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations of a rule, ms."""

    for_ms: int
    clear_for_ms: int


class Step(Enum):
    """What happens with an open episode."""

    KEEP = "keep"
    FIRE = "fire"
    #: A pending episode ends without a notice.
    DROP = "drop"
    #: The condition is not met any more; the time until the end begins.
    BEGIN_CLEARING = "begin-clearing"
    #: The condition is met again before the end.
    STOP_CLEARING = "stop-clearing"
    RESOLVE = "resolve"
    RESOLVE_WITHOUT_DATA = "resolve-without-data"


def next_step(episode: Times, seen: Seen, pace: Pace, now_ms: int) -> Step:
    """Return what happens with an open episode."""
    if episode.state == "pending":
        return _of_pending(episode, seen, pace, now_ms)
    if seen is Seen.UNKNOWN:
        is_lost = now_ms - episode.seen_ms >= NO_DATA_MS
        return Step.RESOLVE_WITHOUT_DATA if is_lost else Step.KEEP
    if seen is not Seen.CLEAR:
        return Step.KEEP if episode.clear_since_ms is None else Step.STOP_CLEARING
    since_ms = now_ms if episode.clear_since_ms is None else episode.clear_since_ms
    if now_ms - since_ms >= pace.clear_for_ms:
        return Step.RESOLVE
    return Step.BEGIN_CLEARING if episode.clear_since_ms is None else Step.KEEP


def _of_pending(episode: Times, seen: Seen, pace: Pace, now_ms: int) -> Step:
    if seen is Seen.UNKNOWN:
        return Step.DROP if now_ms - episode.seen_ms >= NO_DATA_MS else Step.KEEP
    if seen is not Seen.MET:
        return Step.DROP
    return Step.FIRE if now_ms - episode.begun_ms >= pace.for_ms else Step.KEEP
