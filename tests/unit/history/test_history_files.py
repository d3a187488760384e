"""The file of a cluster: samples become hours and days, gaps stay, old data goes, crashes."""

import math
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from console.services.alarms.models import AlarmRule
from console.services.alarms.observing import View, observe
from console.services.history import writing
from console.services.history.files import SLOTS, open_writer
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
from console.services.history.upkeep import SETTLED_AFTER_MS
from tests.unit.history.stored import DAY_0_MS, Recorder, recorder

RATE = BY_NAME["topic", "produce_rate"]
CLOSED_MS = SETTLED_AFTER_MS + INTERVAL_MS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history" / "local.sqlite3"


def read(
    path: Path, begin_ms: int, step_ms: int, count: int, name: str = "orders", metric: Metric = RATE
) -> Points:
    return read_points(path, metric, name, begin_ms, step_ms, count)


def test_a_cluster_without_a_file_and_a_name_without_samples_have_gaps_only(path: Path) -> None:
    assert np.isnan(read(path, DAY_0_MS, MINUTE_MS, 5).values["avg"]).all()
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        other = read(path, DAY_0_MS, MINUTE_MS, 5, "payments")
    assert np.isnan(other.values["avg"]).all()
    assert (other.first_ms, other.interval_ms) == (None, None)


def test_new_samples_are_read_at_once(path: Path) -> None:
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 4.0, "payments": 9.0})
        record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"payments": 11.0})
        orders = read(path, DAY_0_MS, INTERVAL_MS, 3)
        payments = read(path, DAY_0_MS, MINUTE_MS, 1, "payments")
    np.testing.assert_array_equal(orders.values["avg"], [4.0, math.nan, math.nan])
    assert orders.first_ms == DAY_0_MS
    assert (payments.values["avg"][0], payments.values["max"][0]) == (10.0, 11.0)


def test_hours_and_days_answer_what_their_samples_answered(path: Path) -> None:
    """The same questions before and after the upkeep: frames, hours, days."""
    with recorder(path) as record:
        for at_ms in range(DAY_0_MS, DAY_0_MS + DAY_MS, INTERVAL_MS):
            minute = (at_ms - DAY_0_MS) // MINUTE_MS
            value = None if 600 <= minute < 660 else float(minute % 7)
            record.put(at_ms, "topic", "produce_rate", {"orders": value})
        asked = [(DAY_0_MS, MINUTE_MS, 1_440), (DAY_0_MS + HOUR_MS, 30 * MINUTE_MS, 46)]
        before = [read(path, *each).values for each in asked]
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        assert (record.count("frame"), record.count("day")) == (0, 1)
        after = [read(path, *each).values for each in asked]
        record.keep(DAY_0_MS + 3 * DAY_MS)
        assert record.count("hour") == 0
        late = [read(path, *each).values for each in asked]
    for one, two, three in zip(before, after, late, strict=True):
        for name in ("avg", "max"):
            np.testing.assert_allclose(two[name], one[name], rtol=0.001)
            np.testing.assert_array_equal(three[name], two[name])
    assert np.isnan(late[0]["avg"][600:660]).all(), "a gap stays a gap"
    assert not np.isnan(late[0]["avg"][:600]).any()


def test_a_day_is_kept_as_samples_and_older_days_as_minutes(path: Path) -> None:
    with recorder(path) as record:
        record.fill(DAY_0_MS, DAY_0_MS + 3 * DAY_MS, lambda _at: 5.0, every_ms=MINUTE_MS)
        now_ms = DAY_0_MS + 3 * DAY_MS
        recent = read(path, now_ms - DAY_MS, INTERVAL_MS, 1_000)
        old = read(path, DAY_0_MS, INTERVAL_MS, 1_000)
        minutes = read(path, DAY_0_MS, MINUTE_MS, 1_440)
    assert (~np.isnan(recent.values["avg"])).sum() == 167, "each sixth sample was written"
    assert np.isnan(old.values["avg"]).all()
    np.testing.assert_array_equal(minutes.values["max"], np.full(1_440, 5.0))


def test_days_beyond_the_retention_are_deleted_with_their_names(path: Path) -> None:
    with recorder(path, keep_days=2) as record:
        record.fill(DAY_0_MS, DAY_0_MS + HOUR_MS, lambda _at: 1.0, name="gone")
        begin_ms = DAY_0_MS + HOUR_MS
        record.fill(begin_ms, DAY_0_MS + 5 * DAY_MS, lambda _at: 2.0, every_ms=5 * MINUTE_MS)
        record.keep(DAY_0_MS + 5 * DAY_MS + CLOSED_MS)
        days = [row[0] for row in record.db.execute("SELECT begin_ms FROM day")]
        assert days == [DAY_0_MS + 3 * DAY_MS, DAY_0_MS + 4 * DAY_MS]
        names = [row[0] for row in record.db.execute("SELECT name FROM name")]
        assert names == ["orders"]
        coverage = read_coverage(path, "topic", "orders")
        assert coverage is not None
        assert coverage.first_ms == DAY_0_MS + 3 * DAY_MS
        record.put(DAY_0_MS + 5 * DAY_MS, "topic", "produce_rate", {"new": 7.0})
        slots = dict(record.db.execute("SELECT name, slot FROM name").fetchall())
        assert slots == {"orders": 1, "new": 0}, "a free slot is given again"
        new = read(path, DAY_0_MS + 4 * DAY_MS, HOUR_MS, 30, "new")
    assert (~np.isnan(new.values["avg"])).sum() == 1, "nothing of the name that had the slot"


def test_the_size_is_bounded_by_deleting_the_oldest_days(path: Path) -> None:
    noise = np.random.default_rng(3)
    with recorder(path, bytes_max=400_000) as record:
        for day in range(4):
            for minute in range(0, 1_440, 10):
                at_ms = DAY_0_MS + day * DAY_MS + minute * MINUTE_MS
                rates = {f"topic-{n}": float(noise.random() * 1_000) for n in range(400)}
                record.put(at_ms, "topic", "produce_rate", rates)
            record.keep(DAY_0_MS + (day + 1) * DAY_MS + CLOSED_MS)
        days = {row[0] for row in record.db.execute("SELECT begin_ms FROM day")}
        assert DAY_0_MS not in days
    assert path.stat().st_size < 1_000_000


def test_names_beyond_the_limit_have_no_history(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "NAMES_MAX", 20)
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {f"t{n:02}": 1.0 for n in range(30)})
        assert (record.writer.left_out, record.count("name")) == (10, 20)
        record.put(DAY_0_MS + INTERVAL_MS, "group", "lag", {"billing": 3.0})
        assert record.count("name") == 21, "the limit is of each scope"


def test_names_of_several_segments_keep_their_own_values(path: Path) -> None:
    names = {f"topic-{n}": float(n) for n in range(3 * SLOTS + 1)}
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", names)
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        for name, value in names.items():
            found = read(path, DAY_0_MS, MINUTE_MS, 1, name).values["avg"][0]
            assert found == pytest.approx(value, rel=0.00025)


def test_a_second_sample_of_a_time_and_late_samples_do_no_harm(path: Path) -> None:
    with recorder(path) as record, recorder(path) as second:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        second.put(DAY_0_MS, "topic", "produce_rate", {"orders": 8.0})
        record.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        second.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
        second.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        found = read(path, DAY_0_MS, INTERVAL_MS, 3)
    np.testing.assert_array_equal(found.values["avg"], [1.0, 2.0, math.nan])


def test_work_that_is_interrupted_continues(path: Path) -> None:
    with recorder(path) as record:
        record.fill(DAY_0_MS, DAY_0_MS + 600_000, lambda at: float(at % 7))
        expected = read(path, DAY_0_MS, MINUTE_MS, 10).values["avg"]
        steps = iter([True, False])
        assert not record.upkeep.run(DAY_0_MS + DAY_MS + CLOSED_MS, lambda: next(steps))
    with recorder(path) as record:  # after a crash: nothing of the work is in memory
        record.keep(DAY_0_MS + DAY_MS + CLOSED_MS)
        assert record.count("day") == 1
        found = read(path, DAY_0_MS, MINUTE_MS, 10).values["avg"]
    np.testing.assert_allclose(found, expected, rtol=0.001)


def test_a_failed_write_stores_nothing_and_the_next_one_everything(path: Path) -> None:
    with recorder(path) as record:
        record.db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON frame BEGIN SELECT raise(ABORT, 'full'); END"
        )
        with pytest.raises(sqlite3.Error):
            record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        assert record.count("name") == 0
        record.db.execute("DROP TRIGGER full")
        record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
        found = read(path, DAY_0_MS, INTERVAL_MS, 2)
    np.testing.assert_array_equal(found.values["avg"], [math.nan, 2.0])


def test_a_damaged_row_is_a_gap(path: Path) -> None:
    with recorder(path) as record:
        record.fill(DAY_0_MS, DAY_0_MS + HOUR_MS, lambda _at: 1.0)
        record.keep(DAY_0_MS + HOUR_MS + CLOSED_MS)
        record.put(DAY_0_MS + HOUR_MS, "topic", "produce_rate", {"orders": 3.0})
        record.db.execute("UPDATE hour SET data = x'00'")
        found = read(path, DAY_0_MS, HOUR_MS, 2)
    np.testing.assert_array_equal(found.values["avg"], [math.nan, 3.0])


def test_a_file_that_is_no_database_is_put_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 1_000)
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 3.0})
        assert read(path, DAY_0_MS, MINUTE_MS, 1).values["avg"][0] == 3.0
    assert path.with_suffix(".broken").exists()


def test_readers_do_not_wait_for_a_writer(path: Path) -> None:
    with recorder(path) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 3.0})
        record.db.execute("BEGIN IMMEDIATE")
        found: list[Points] = []
        reader = threading.Thread(target=lambda: found.append(read(path, DAY_0_MS, MINUTE_MS, 1)))
        reader.start()
        reader.join(30)
        record.db.execute("ROLLBACK")
    assert found[0].values["avg"][0] == 3.0


def test_a_killed_writer_loses_nothing_committed(path: Path) -> None:
    db = open_writer(path)  # never closed: as after a kill, the log is not yet in the file
    try:
        record = Recorder(path, 30, 1 << 30)
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 3.0})
        copy = path.with_name("copy.sqlite3")
        copy.write_bytes(path.read_bytes())
        log = path.with_name(path.name + "-wal")
        copy.with_name(copy.name + "-wal").write_bytes(log.read_bytes())
        assert read(copy, DAY_0_MS, MINUTE_MS, 1).values["avg"][0] == 3.0
        record.db.close()
    finally:
        db.close()


@pytest.mark.parametrize("begun", ["", "PRAGMA journal_mode = WAL", "CREATE TABLE name (x)"])
def test_a_file_without_its_tables_is_no_history_and_no_fault(
    path: Path, begun: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers may come between the creation of the file and the commit of its tables."""
    path.parent.mkdir()
    path.touch()
    with closing(sqlite3.connect(path)) as db:
        db.execute(begun)
    assert math.isnan(read(path, DAY_0_MS, MINUTE_MS, 1).values["avg"][0])
    assert read_coverage(path, "topic", "orders") is None
    rule = AlarmRule(name="slow", source="metric", scope="topic", metric="produce_rate")
    view = View.of(path.parent.parent, "local", None, DAY_0_MS)
    assert not observe(rule, view).by_key
    assert not caplog.records


def test_a_damaged_file_is_a_fault_for_alarms(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1_000)
    rule = AlarmRule(name="slow", source="metric", scope="topic", metric="produce_rate")
    assert not observe(rule, View.of(path.parent.parent, "local", None, DAY_0_MS)).by_key
    assert "cannot be read for alarms" in caplog.text


def test_scopes_and_metrics_have_numbers_of_their_own() -> None:
    numbers = [metric.number for metric in BY_NAME.values()]
    assert len(set(numbers)) == len(numbers)
    assert len(set(SCOPES.values())) == len(SCOPES)
