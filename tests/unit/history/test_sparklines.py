"""Sparklines: the last hour of a list's rows, over the open hour and the packed one."""

from typing import Any

import numpy as np
import pytest

from console.services.history import sparklines
from console.services.history.blocks import pack, unpack
from console.services.history.metrics import BY_NAME, HOUR_MS, INTERVAL_MS, MINUTE_MS
from console.services.history.sparklines import (
    FRAMES_BYTES_MAX,
    MINUTES,
    FrameCache,
    Sparkline,
    read_sparklines,
)
from console.services.history.store import Place
from console.services.history.upkeep import SETTLED_AFTER_MS
from tests.unit.history.stored import DAY_0_MS, recorder

RATE = BY_NAME["topic", "produce_rate"]
HALF_PAST_MS = DAY_0_MS + HOUR_MS + HOUR_MS // 2


def line(*values: float) -> Sparkline:
    return Sparkline(np.array(values))


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_line_has_the_last_sample_of_each_minute_of_the_hour(
    place: Place, is_packed: bool
) -> None:
    with recorder(place) as record:
        for at_ms in range(DAY_0_MS, HALF_PAST_MS, INTERVAL_MS):
            minute, sample = divmod((at_ms - DAY_0_MS) // INTERVAL_MS, 6)
            values = {"orders": minute + sample / 100, "new": 1.0 if minute > 80 else None}
            record.put(at_ms, "topic", "produce_rate", values)
        if is_packed:
            record.keep(HALF_PAST_MS + SETTLED_AFTER_MS + INTERVAL_MS)
            assert record.count("hour") == 1
        lines = read_sparklines(place, RATE, ["orders", "new", "gone"], HALF_PAST_MS - 1)
    assert set(lines) == {"orders", "new"}
    expected = np.arange(30, 30 + MINUTES) + 0.05
    np.testing.assert_allclose(lines["orders"].values, expected, rtol=0.001)
    assert np.isnan(lines["new"].values[:51]).all()
    assert lines["new"].known.tolist() == [1.0] * 9


def test_a_name_has_no_minutes_of_the_name_before(place: Place) -> None:
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 7.0})
        record.change("UPDATE {t}name SET first_ms = ? WHERE {own}", DAY_0_MS + 2 * MINUTE_MS)
        assert read_sparklines(place, RATE, ["orders"], DAY_0_MS + 3 * MINUTE_MS) == {}


def test_a_frame_is_unpacked_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[bytes] = []

    def counted(packed: bytes, *shape: Any, **more: Any) -> Any:
        unpacked.append(packed)
        return unpack(packed, *shape, **more)

    monkeypatch.setattr(sparklines, "unpack", counted)
    monkeypatch.setattr(sparklines, "_frames_kept", FrameCache(FRAMES_BYTES_MAX))
    with recorder(place) as record:
        for minute in range(3):
            record.put(
                DAY_0_MS + minute * MINUTE_MS, "topic", "produce_rate", {"once": 0.37 + minute}
            )
        first = read_sparklines(place, RATE, ["once"], DAY_0_MS + 3 * MINUTE_MS)
        assert len(unpacked) == 3
        second = read_sparklines(place, RATE, ["once"], DAY_0_MS + 3 * MINUTE_MS)
        assert len(unpacked) == 3
        assert second["once"].known.tolist() == first["once"].known.tolist()
        record.put(DAY_0_MS + 3 * MINUTE_MS, "topic", "produce_rate", {"once": 9.37})
        third = read_sparklines(place, RATE, ["once"], DAY_0_MS + 3 * MINUTE_MS)
    assert len(unpacked) == 4
    np.testing.assert_allclose(third["once"].known, [0.37, 1.37, 2.37, 9.37], rtol=0.001)


def test_the_frames_of_an_hour_of_five_large_clusters_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unpacked: list[bytes] = []

    def counted(packed: bytes, *shape: Any, **more: Any) -> Any:
        unpacked.append(packed)
        return unpack(packed, *shape, **more)

    monkeypatch.setattr(sparklines, "unpack", counted)
    samples = np.random.default_rng(7)
    topics, metrics, clusters = 5_000, 4, 5
    frames = [
        pack(samples.integers(0, 10_000, topics) / 7, exact=False)
        for _ in range(clusters * metrics * MINUTES)
    ]
    cache = FrameCache(FRAMES_BYTES_MAX)
    for _round in range(2):
        for frame in frames:
            cache.values(frame, exact=False)
    assert len(unpacked) == len(frames)
    assert cache.bytes <= FRAMES_BYTES_MAX


def test_kept_frames_are_bounded_by_their_size() -> None:
    frames = [pack(np.full(100, float(number)), exact=True) for number in range(50)]
    whole = FrameCache(FRAMES_BYTES_MAX)
    for frame in frames:
        whole.values(frame, exact=True)
    most = whole.bytes // 2
    half = FrameCache(most)
    for frame in frames:
        values = half.values(frame, exact=True)
        assert half.bytes <= most
        assert values[0] == frames.index(frame)
    assert half.bytes > most * 0.9


def test_a_place_without_history_and_an_empty_list_have_no_lines(place: Place) -> None:
    assert read_sparklines(place, RATE, ["orders"], DAY_0_MS) == {}
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 7.0})
        assert read_sparklines(place, RATE, [], DAY_0_MS) == {}


def test_a_gap_interrupts_the_line_and_a_single_sample_is_a_dot() -> None:
    nan = float("nan")
    assert line(0, 10, nan, 5).path == "M0 15.0L1 1.0h.5M3 8.0h.5"
    assert line(0, 0).path == "M0 15.0L1 15.0h.5"
