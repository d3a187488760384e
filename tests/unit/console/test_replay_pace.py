"""deadletters/replays.py: no faster than told, and no rush after a rest."""

import pytest

from console.areas.deadletters.replays import STEP_S, Pace
from console.gateway.dead_letters.search import REPLAY_CHUNK_MAX


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("rate", [1, 7, 100, 500, 5_000])
def test_a_count_of_messages_takes_its_time(rate: int) -> None:
    clock = Clock()
    pace = Pace(rate, clock)
    left, begun = 20 * rate, clock.now
    while left:
        done = min(left, pace.step_size)
        left -= done
        clock.now += 0.03  # sending takes time, too
        clock.now += pace.delay_s(done)
    assert clock.now - begun == pytest.approx(20, rel=0.01)


def test_a_step_is_short_and_bounded() -> None:
    assert Pace(1).step_size == 1
    assert Pace(500).step_size == 500 * STEP_S
    assert Pace(100_000).step_size == REPLAY_CHUNK_MAX


def test_what_a_pause_lost_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(100, clock)
    clock.now += 3_600
    rests = [pace.delay_s(20) for _ in range(20)]
    assert sum(rest == 0 for rest in rests) <= 6
    assert rests[-1] > 2
