"""The file of a cluster: full disks, damage, readers beside a writer, kills."""

import math
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from console.services.alarms.models import AlarmRule
from console.services.alarms.observing import View, observe
from console.services.history.files import FilePlace, FileStore
from console.services.history.metrics import BY_NAME, INTERVAL_MS, MINUTE_MS
from console.services.history.reading import Points, read_coverage, read_points
from tests.unit.history.stored import DAY_0_MS, Recorder, recorder

RATE = BY_NAME["topic", "produce_rate"]


def read(path: Path, begin_ms: int, step_ms: int, count: int) -> Points:
    return read_points(FilePlace(path), RATE, "orders", begin_ms, step_ms, count)


def connection_of(record: Recorder) -> sqlite3.Connection:
    assert isinstance(record.store, FileStore)
    return record.store.db


def test_a_failed_write_stores_nothing_and_the_next_one_everything(path: Path) -> None:
    with recorder(path) as record:
        connection_of(record).execute(
            "CREATE TRIGGER full BEFORE INSERT ON frame BEGIN SELECT raise(ABORT, 'full'); END"
        )
        with pytest.raises(sqlite3.Error):
            record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        assert record.count("name") == 0
        connection_of(record).execute("DROP TRIGGER full")
        record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
        found = read(path, DAY_0_MS, INTERVAL_MS, 2)
    np.testing.assert_array_equal(found.values["avg"], [math.nan, 2.0])


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
        connection_of(record).execute("BEGIN IMMEDIATE")
        found: list[Points] = []
        reader = threading.Thread(target=lambda: found.append(read(path, DAY_0_MS, MINUTE_MS, 1)))
        reader.start()
        reader.join(30)
        connection_of(record).execute("ROLLBACK")
    assert found[0].values["avg"][0] == 3.0


def test_a_killed_writer_loses_nothing_committed(path: Path) -> None:
    db = FilePlace(path).writer()  # never closed: as after a kill, the log is not yet in the file
    try:
        record = Recorder(path, 30, 1 << 30)
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 3.0})
        copy = path.with_name("copy.sqlite3")
        copy.write_bytes(path.read_bytes())
        log = path.with_name(path.name + "-wal")
        copy.with_name(copy.name + "-wal").write_bytes(log.read_bytes())
        assert read(copy, DAY_0_MS, MINUTE_MS, 1).values["avg"][0] == 3.0
        record.store.close()
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
    assert read_coverage(FilePlace(path), "topic", "orders") is None
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
