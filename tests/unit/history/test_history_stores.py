"""The file of a cluster: samples become hours and days, gaps stay, old data goes, crashes."""

import math

import numpy as np
import pytest

from console.services.history import writing
from console.services.history.files import FilePlace
from console.services.history.metrics import (
    BY_NAME,
    DAY_MS,
    HOUR_MS,
    INTERVAL_MS,
    MINUTE_MS,
    SCOPES,
    Metric,
)
from console.services.history.reading import Points, read_coverage, read_points
from console.services.history.store import SLOTS, Place
from console.services.history.upkeep import SETTLED_AFTER_MS
from tests.unit.history.stored import DAY_0_MS, recorder

RATE = BY_NAME["topic", "produce_rate"]
CLOSED_MS = SETTLED_AFTER_MS + INTERVAL_MS


def read(
    place: Place,
    begin_ms: int,
    step_ms: int,
    count: int,
    name: str = "orders",
    metric: Metric = RATE,
) -> Points:
    return read_points(place, metric, name, begin_ms, step_ms, count)


def minutes_between(place: Place) -> int:
    """Minutes between two samples of days of samples: requests to a server take their time."""
    return 1 if isinstance(place, FilePlace) else 30


def test_a_cluster_without_a_file_and_a_name_without_samples_have_gaps_only(place: Place) -> None:
    assert np.isnan(read(place, DAY_0_MS, MINUTE_MS, 5).values["avg"]).all()
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        other = read(place, DAY_0_MS, MINUTE_MS, 5, "payments")
    assert np.isnan(other.values["avg"]).all()
    assert (other.first_ms, other.interval_ms) == (None, None)


def test_new_samples_are_read_at_once(place: Place) -> None:
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 4.0, "payments": 9.0})
        record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"payments": 11.0})
        orders = read(place, DAY_0_MS, INTERVAL_MS, 3)
        payments = read(place, DAY_0_MS, MINUTE_MS, 1, "payments")
    np.testing.assert_array_equal(orders.values["avg"], [4.0, math.nan, math.nan])
    assert orders.first_ms == DAY_0_MS
    assert (payments.values["avg"][0], payments.values["max"][0]) == (10.0, 11.0)


def test_hours_and_days_answer_what_their_samples_answered(place: Place) -> None:
    """The same questions before and after the upkeep: frames, hours, days."""
    with recorder(place) as record:
        step = minutes_between(place)
        every_ms = INTERVAL_MS if step == 1 else step * MINUTE_MS
        for at_ms in range(DAY_0_MS, DAY_0_MS + DAY_MS, every_ms):
            minute = (at_ms - DAY_0_MS) // MINUTE_MS
            value = None if 600 <= minute < 660 else float(minute % 7)
            record.put(at_ms, "topic", "produce_rate", {"orders": value})
        asked = [(DAY_0_MS, MINUTE_MS, 1_440), (DAY_0_MS + HOUR_MS, 30 * MINUTE_MS, 46)]
        before = [read(place, *each).values for each in asked]
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        assert (record.count("frame"), record.count("day")) == (0, 1)
        after = [read(place, *each).values for each in asked]
        record.keep(DAY_0_MS + 3 * DAY_MS)
        assert record.count("hour") == 0
        late = [read(place, *each).values for each in asked]
    for one, two, three in zip(before, after, late, strict=True):
        for name in ("avg", "max"):
            np.testing.assert_allclose(two[name], one[name], rtol=0.001)
            np.testing.assert_array_equal(three[name], two[name])
    assert np.isnan(late[0]["avg"][600:660]).all(), "a gap stays a gap"
    assert not np.isnan(late[0]["avg"][:600:step]).any()


def test_a_day_is_kept_as_samples_and_older_days_as_minutes(place: Place) -> None:
    step = minutes_between(place)
    with recorder(place) as record:
        record.fill(DAY_0_MS, DAY_0_MS + 3 * DAY_MS, lambda _at: 5.0, every_ms=step * MINUTE_MS)
        now_ms = DAY_0_MS + 3 * DAY_MS
        recent = read(place, now_ms - DAY_MS, INTERVAL_MS, 1_000)
        old = read(place, DAY_0_MS, INTERVAL_MS, 1_000)
        minutes = read(place, DAY_0_MS, MINUTE_MS, 1_440)
    assert (~np.isnan(recent.values["avg"])).sum() == len(range(0, 1_000, 6 * step))
    assert np.isnan(old.values["avg"]).all()
    assert (minutes.values["max"][::step] == 5.0).all()


def test_days_beyond_the_retention_are_deleted_with_their_names(place: Place) -> None:
    begin_ms = DAY_0_MS + HOUR_MS
    with recorder(place, keep_days=2) as record:
        every_ms = max(5, minutes_between(place)) * MINUTE_MS
        record.fill(DAY_0_MS, begin_ms, lambda _at: 1.0, every_ms=every_ms, name="gone")
        record.fill(begin_ms, DAY_0_MS + 5 * DAY_MS, lambda _at: 2.0, every_ms=every_ms)
        record.keep(DAY_0_MS + 5 * DAY_MS + CLOSED_MS)
        days = [row[0] for row in record.read("SELECT begin_ms FROM {t}day WHERE {own}")]
        assert days == [DAY_0_MS + 3 * DAY_MS, DAY_0_MS + 4 * DAY_MS]
        names = [row[0] for row in record.read("SELECT name FROM {t}name WHERE {own}")]
        assert names == ["orders"]
        coverage = read_coverage(place, "topic", "orders")
        assert coverage is not None
        assert coverage.first_ms == DAY_0_MS + 3 * DAY_MS
        record.put(DAY_0_MS + 5 * DAY_MS, "topic", "produce_rate", {"new": 7.0})
        slots = dict(record.read("SELECT name, slot FROM {t}name WHERE {own}"))
        assert slots == {"orders": 1, "new": 0}, "a free slot is given again"
        new = read(place, DAY_0_MS + 4 * DAY_MS, HOUR_MS, 30, "new")
    assert (~np.isnan(new.values["avg"])).sum() == 1, "nothing of the name that had the slot"


def test_the_size_is_bounded_by_deleting_the_oldest_days(place: Place) -> None:
    noise = np.random.default_rng(3)
    with recorder(place, bytes_max=400_000) as record:
        for day in range(4):
            for minute in range(0, 1_440, 10):
                at_ms = DAY_0_MS + day * DAY_MS + minute * MINUTE_MS
                rates = {f"topic-{n}": float(noise.random() * 1_000) for n in range(400)}
                record.put(at_ms, "topic", "produce_rate", rates)
            record.keep(DAY_0_MS + (day + 1) * DAY_MS + CLOSED_MS)
        days = {row[0] for row in record.read("SELECT begin_ms FROM {t}day WHERE {own}")}
        assert DAY_0_MS not in days
    if isinstance(place, FilePlace):
        assert place.path.stat().st_size < 1_000_000


def test_names_beyond_the_limit_have_no_history(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "NAMES_MAX", 20)
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {f"t{n:02}": 1.0 for n in range(30)})
        assert (record.writer.left_out, record.count("name")) == (10, 20)
        record.put(DAY_0_MS + INTERVAL_MS, "group", "lag", {"billing": 3.0})
        assert record.count("name") == 21, "the limit is of each scope"


def test_names_of_several_segments_keep_their_own_values(place: Place) -> None:
    names = {f"topic-{n}": float(n) for n in range(3 * SLOTS + 1)}
    with recorder(place) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", names)
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        for name, value in names.items():
            found = read(place, DAY_0_MS, MINUTE_MS, 1, name).values["avg"][0]
            assert found == pytest.approx(value, rel=0.00025)


def test_a_second_sample_of_a_time_and_late_samples_do_no_harm(place: Place) -> None:
    with recorder(place) as record, recorder(place) as second:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        second.put(DAY_0_MS, "topic", "produce_rate", {"orders": 8.0})
        record.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        second.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
        second.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        found = read(place, DAY_0_MS, INTERVAL_MS, 3)
    np.testing.assert_array_equal(found.values["avg"], [1.0, 2.0, math.nan])


def test_work_that_is_interrupted_continues(place: Place) -> None:
    with recorder(place) as record:
        record.fill(DAY_0_MS, DAY_0_MS + 600_000, lambda at: float(at % 7))
        expected = read(place, DAY_0_MS, MINUTE_MS, 10).values["avg"]
        steps = iter([True, False])
        assert not record.upkeep.run(DAY_0_MS + DAY_MS + CLOSED_MS, lambda: next(steps))
    with recorder(place) as record:  # after a crash: nothing of the work is in memory
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        assert record.count("day") == 1
        found = read(place, DAY_0_MS, MINUTE_MS, 10).values["avg"]
    np.testing.assert_allclose(found, expected, rtol=0.001)


def test_a_damaged_row_is_a_gap(place: Place) -> None:
    with recorder(place) as record:
        record.fill(DAY_0_MS, DAY_0_MS + HOUR_MS, lambda _at: 1.0)
        record.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        record.put(DAY_0_MS + HOUR_MS, "topic", "produce_rate", {"orders": 3.0})
        record.change("UPDATE {t}hour SET data = ? WHERE {own}", b"\0")
        found = read(place, DAY_0_MS, HOUR_MS, 2)
    np.testing.assert_array_equal(found.values["avg"], [math.nan, 3.0])


def test_scopes_and_metrics_have_numbers_of_their_own() -> None:
    numbers = [metric.number for metric in BY_NAME.values()]
    assert len(set(numbers)) == len(numbers)
    assert len(set(SCOPES.values())) == len(SCOPES)
