"""Conditions and steps of episodes."""

import pytest

from console.services.alarms.conditions import (
    NO_DATA_MS,
    Condition,
    Pace,
    Seen,
    Step,
    Times,
    next_step,
)

PACE = Pace(for_ms=60_000, clear_for_ms=30_000)
T0 = 1_000_000


@pytest.mark.parametrize(
    ("value", "seen"),
    [(11, Seen.MET), (10, Seen.HOLD), (5.1, Seen.HOLD), (5, Seen.CLEAR), (0, Seen.CLEAR)],
)
def test_above_with_hysteresis(value: float, seen: Seen) -> None:
    assert Condition("above", 10, 5).seen(value) is seen


@pytest.mark.parametrize(
    ("value", "seen"), [(1, Seen.MET), (2, Seen.HOLD), (3, Seen.HOLD), (4, Seen.CLEAR)]
)
def test_below_with_hysteresis(value: float, seen: Seen) -> None:
    assert Condition("below", 2, 4).seen(value) is seen


def test_without_a_second_threshold_nothing_holds() -> None:
    assert Condition("above", 10).seen(10) is Seen.CLEAR
    assert Condition("below", 10).seen(10) is Seen.CLEAR


@pytest.mark.parametrize(
    ("seen", "passed_ms", "step"),
    [
        (Seen.MET, 59_999, Step.KEEP),
        (Seen.MET, 60_000, Step.FIRE),
        (Seen.HOLD, 60_000, Step.DROP),
        (Seen.CLEAR, 1, Step.DROP),
        (Seen.UNKNOWN, 60_000, Step.KEEP),
        (Seen.UNKNOWN, NO_DATA_MS, Step.DROP),
    ],
)
def test_a_pending_episode(seen: Seen, passed_ms: int, step: Step) -> None:
    assert next_step(Times("pending", T0, None, T0), seen, PACE, T0 + passed_ms) is step


@pytest.mark.parametrize(
    ("clear_since_ms", "seen", "passed_ms", "step"),
    [
        (None, Seen.MET, 10, Step.KEEP),
        (None, Seen.HOLD, 10, Step.KEEP),
        (None, Seen.CLEAR, 10, Step.BEGIN_CLEARING),
        (T0, Seen.CLEAR, 29_999, Step.KEEP),
        (T0, Seen.CLEAR, 30_000, Step.RESOLVE),
        (T0, Seen.MET, 29_999, Step.STOP_CLEARING),
        (T0, Seen.HOLD, 29_999, Step.STOP_CLEARING),
        (None, Seen.UNKNOWN, NO_DATA_MS - 1, Step.KEEP),
        (None, Seen.UNKNOWN, NO_DATA_MS, Step.RESOLVE_WITHOUT_DATA),
    ],
)
def test_a_firing_episode(
    clear_since_ms: int | None, seen: Seen, passed_ms: int, step: Step
) -> None:
    episode = Times("firing", T0, clear_since_ms, T0)
    assert next_step(episode, seen, PACE, T0 + passed_ms) is step


def test_without_a_time_an_alarm_resolves_at_once() -> None:
    at_once = Pace(0, 0)
    assert next_step(Times("firing", T0, None, T0), Seen.CLEAR, at_once, T0) is Step.RESOLVE


def test_flapping_never_fires() -> None:
    """A value that is over the threshold for less than `for` begins a new episode each time."""
    begun_ms, fired = T0, False
    for at_ms in range(T0, T0 + 3_600_000, 10_000):
        seen = Seen.CLEAR if at_ms // 50_000 % 2 else Seen.MET
        step = next_step(Times("pending", begun_ms, None, at_ms), seen, PACE, at_ms)
        fired |= step is Step.FIRE
        if step is Step.DROP:
            begun_ms = at_ms + 10_000
    assert not fired
