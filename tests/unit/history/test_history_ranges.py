"""Steps of ranges: whole, bounded, and as fine as what is kept."""

from datetime import UTC

import pytest

from console.services.analytics.ranges import SPANS
from console.services.history.metrics import DAY_MS, HOUR_MS, INTERVAL_MS, MINUTE_MS
from console.services.history.ranges import POINTS_DEFAULT_MAX, read_history_range
from console.services.history.reading import POINTS_MAX

NOW_MS = 1_762_300_012_345


@pytest.mark.parametrize("span", SPANS)
def test_named_ranges_have_bounded_points_up_to_now(span: str) -> None:
    found = read_history_range({"range": span}, NOW_MS, UTC)
    assert found.count <= POINTS_DEFAULT_MAX + 1
    assert found.begin_ms % found.step_ms == 0
    assert found.begin_ms <= NOW_MS - SPANS[span][0] + MINUTE_MS
    assert found.end_ms > NOW_MS


def test_the_last_hour_has_the_resolution_of_the_sampler_and_older_hours_minutes() -> None:
    recent = {"begin_ms": str(NOW_MS - HOUR_MS), "end_ms": str(NOW_MS)}
    assert read_history_range(recent, NOW_MS, UTC).step_ms == INTERVAL_MS
    old = {"begin_ms": str(NOW_MS - 3 * DAY_MS), "end_ms": str(NOW_MS - 3 * DAY_MS + HOUR_MS)}
    assert read_history_range(old, NOW_MS, UTC).step_ms == MINUTE_MS


def test_the_step_is_not_below_the_interval_of_the_samples() -> None:
    found = read_history_range({"range": "15m"}, NOW_MS, UTC, interval_ms=50_000)
    assert found.step_ms == MINUTE_MS


@pytest.mark.parametrize(
    "params",
    [
        {"step_ms": "0"},
        {"step_ms": "-10000"},
        {"step_ms": "10001"},
        {"step_ms": "40000"},
        {"step_ms": "90000"},
        {"step_ms": "1e5"},
        {"step_ms": "٣"},
        {"step_ms": "9" * 30},
        {"step_ms": "60000", "range": "30d"},
        {"step_ms": "10000", "range": "24h"},
        {"step_ms": "10000", "begin_ms": "0", "end_ms": "1000000"},
        {"range": "forever"},
        {"begin_ms": "20", "end_ms": "10"},
    ],
)
def test_invalid_steps_and_ranges_are_rejected(params: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must be|choose a larger|at most a year"):
        read_history_range(params, NOW_MS, UTC)


def test_an_explicit_step_has_at_most_points_max() -> None:
    found = read_history_range({"range": "24h", "step_ms": "60000"}, NOW_MS, UTC)
    assert (found.step_ms, found.count) == (MINUTE_MS, 1_440)
    assert found.count <= POINTS_MAX
