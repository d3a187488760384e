"""Time ranges: named, with begin and end, and invalid ranges."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.services.analytics.ranges import (
    DAY_MS,
    MINUTE_MS,
    POINTS_MAX,
    RANGE_MS_MAX,
    SPANS,
    STEPS_MS,
    on_grid,
    read_range,
)

NOW_MS = 1_762_300_012_345


@pytest.mark.parametrize("span", SPANS)
def test_a_named_range_ends_with_the_current_minute(span: str) -> None:
    range_ = read_range({"range": span}, NOW_MS, UTC)
    assert range_.begin_ms <= NOW_MS + MINUTE_MS - SPANS[span][0]
    assert range_.end_ms > NOW_MS
    assert len(range_.points) <= POINTS_MAX + 2
    assert range_.span == span


def test_the_default_is_an_hour_by_minutes() -> None:
    range_ = read_range({}, NOW_MS, UTC)
    assert (range_.step_ms, len(range_.points)) == (MINUTE_MS, 60)
    assert len(range_.hours) == 2


@pytest.mark.parametrize(
    "params",
    [
        {"range": "2 weeks"},
        {"begin_ms": "x"},
        {"begin_ms": "-5", "end_ms": "10"},
        {"begin_ms": "20", "end_ms": "10"},
        {"begin_ms": "10", "end_ms": "10"},
        {"end_ms": "10"},
        {"begin_ms": "0", "end_ms": str(RANGE_MS_MAX + 1)},
        {"begin_ms": "9" * 40},
        {"begin_ms": "٣"},
        {"begin": "yesterday"},
        {"begin": "2026-11-05T13:00", "end": "2026-11-05T12:00"},
        {"begin": "0001-01-01T00:00", "end": "2026-11-05T12:00"},
        {"begin": "2026-11-05T13:00" + "0" * 100_000},
        {"end": "2026-11-05T12:00"},
    ],
)
def test_invalid_ranges_are_rejected(params: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must be|be before"):
        read_range(params, NOW_MS, UTC)


def test_local_times_in_the_time_zone_of_the_user() -> None:
    local_times = {"begin": "2026-11-05T13:00", "end": "2026-11-05T14:00"}
    shanghai = read_range(local_times, NOW_MS, ZoneInfo("Asia/Shanghai"))
    assert shanghai.end_ms - shanghai.begin_ms == 3_600_000
    assert read_range(local_times, NOW_MS, UTC).begin_ms - shanghai.begin_ms == 8 * 3_600_000
    with_zone = {name: f"{text}+08:00" for name, text in local_times.items()}
    assert read_range(with_zone, NOW_MS, UTC) == shanghai


@given(st.integers(0, 10**13), st.integers(1, RANGE_MS_MAX))
def test_the_grid_covers_the_range_with_few_points(begin_ms: int, length_ms: int) -> None:
    range_ = on_grid(begin_ms, begin_ms + length_ms)
    assert range_.begin_ms <= begin_ms
    assert range_.end_ms >= begin_ms + length_ms
    assert range_.step_ms in STEPS_MS
    assert range_.begin_ms % range_.step_ms == range_.end_ms % range_.step_ms == 0
    assert len(range_.points) <= POINTS_MAX + 2
    assert len(range_.hours) <= (length_ms + 2 * range_.step_ms) // (DAY_MS // 24) + 2
