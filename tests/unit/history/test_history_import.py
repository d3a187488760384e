"""A history file goes to PostgreSQL: nothing is lost, nothing twice, whatever happens meanwhile."""

import logging
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from console.services.history.files import FilePlace, path_of
from console.services.history.importing import FileImport, pending_import
from console.services.history.metrics import BY_NAME, DAY_MS, HOUR_MS, INTERVAL_MS, MINUTE_MS
from console.services.history.postgres import PostgresPlace
from console.services.history.reading import read_coverage, read_points
from console.services.history.store import SLOTS, Place
from tests.unit.history.stored import DAY_0_MS, recorder

RATE = BY_NAME["topic", "produce_rate"]
EVERY_MS = 30 * MINUTE_MS
END_MS = DAY_0_MS + 2 * DAY_MS + 2 * HOUR_MS + 5 * EVERY_MS
NAMES = tuple(f"topic-{number}" for number in range(SLOTS + 2))


@pytest.fixture
def filled(tmp_path: Path) -> FilePlace:
    """Two days, some hours and an open hour of a cluster."""
    place = FilePlace(path_of(tmp_path, "local"))
    with recorder(place) as record:
        for at_ms in range(DAY_0_MS, END_MS, EVERY_MS):
            rates = {
                name: float(at_ms // EVERY_MS % 97 + index) for index, name in enumerate(NAMES)
            }
            record.put(at_ms, "topic", "produce_rate", rates)
        record.keep(END_MS)
        assert record.count("day") > 0
        assert record.count("hour") > 0
        assert record.count("frame") > 0
    return place


def points(place: Place, name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    steps = (END_MS - DAY_0_MS) // EVERY_MS + 2
    return read_points(place, RATE, name, DAY_0_MS, EVERY_MS, steps).values["max"]


def started(filled: FilePlace, place: PostgresPlace) -> FileImport:
    found = pending_import(filled.path.parents[1], "local", place.writer())
    assert found is not None
    return found


def test_a_file_is_imported_whole_and_renamed(
    filled: FilePlace, in_postgres: PostgresPlace, caplog: pytest.LogCaptureFixture
) -> None:
    expected = {name: points(filled, name) for name in NAMES}
    coverage = read_coverage(filled, "topic", NAMES[0])
    with caplog.at_level(logging.INFO):
        assert started(filled, in_postgres).run(lambda: True)
    for name, values in expected.items():
        np.testing.assert_array_equal(points(in_postgres, name), values)
    found = read_coverage(in_postgres, "topic", NAMES[0])
    assert coverage is not None
    assert found is not None
    assert (found.first_ms, found.interval_ms) == (coverage.first_ms, coverage.interval_ms)
    assert not filled.path.exists()
    assert filled.path.with_suffix(".imported").exists()
    assert "100 % imported" in caplog.text
    assert pending_import(filled.path.parents[1], "local", in_postgres.writer()) is None


def test_an_interrupted_import_begins_again_beside_new_samples(
    filled: FilePlace, in_postgres: PostgresPlace
) -> None:
    expected = {name: points(filled, name) for name in NAMES}
    now_ms = END_MS + INTERVAL_MS
    steps = iter([True] * 3 + [False])
    interrupted = started(filled, in_postgres)
    assert not interrupted.run(lambda: next(steps))
    interrupted.close()  # the worker ends
    with recorder(in_postgres) as record:
        record.put(now_ms, "topic", "produce_rate", {NAMES[0]: 500.0})
        assert started(filled, in_postgres).run(lambda: True)
        record.keep(now_ms)
    for name, values in expected.items():
        found = points(in_postgres, name)
        index = (now_ms - DAY_0_MS) // EVERY_MS
        np.testing.assert_array_equal(np.delete(found, index), np.delete(values, index))
    assert points(in_postgres, NAMES[0])[index] == 500.0


def test_names_move_where_their_slots_are_taken(
    filled: FilePlace, in_postgres: PostgresPlace
) -> None:
    expected = {name: points(filled, name) for name in NAMES}
    with recorder(in_postgres) as record:
        record.put(END_MS, "topic", "produce_rate", {"other": 7.0, NAMES[3]: 8.0})
        assert started(filled, in_postgres).run(lambda: True)
        slots = record.read("SELECT slot FROM {t}name WHERE {own} AND scope = 1")
    assert len(set(slots)) == len(slots) == len(NAMES) + 1
    for name, values in expected.items():
        np.testing.assert_array_equal(points(in_postgres, name)[:-2], values[:-2])
    other = points(in_postgres, "other")
    assert other[~np.isnan(other)].tolist() == [7.0]


def test_a_damaged_file_is_left_and_stops_nothing(
    filled: FilePlace, in_postgres: PostgresPlace, caplog: pytest.LogCaptureFixture
) -> None:
    found = started(filled, in_postgres)
    found._file.db.execute("DROP TABLE day")
    assert found.run(lambda: True), "the sampler goes on with its upkeep"
    assert filled.path.exists()
    assert "until the next start of the worker" in caplog.text
    with pytest.raises(sqlite3.ProgrammingError):
        found._file.db.execute("SELECT 1")
