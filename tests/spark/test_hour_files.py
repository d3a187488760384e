"""Parquet files of tasks: rows by hour, bounded files, and only files of named tasks in a lake."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow
import pytest
from pyarrow.parquet import ParquetFile

from spark_jobs.spark import hour_files
from spark_jobs.spark.hour_files import HourFiles, StagedFile
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.message_index import index_of, row_groups_with
from spark_jobs.tables.facts import message_hashes
from trace.columns import arrow_schema
from trace.lake import HOUR_MS, MINUTE, Lake, Snapshot
from trace.tables import EVENTS, TABLES

HOUR = 489_000
TABLE = TABLES[MINUTE]


def rows(hours: Sequence[int]) -> pyarrow.RecordBatch:
    values = [{"minute_ms": hour * HOUR_MS, "topic": "orders", "sends": 1} for hour in hours]
    return pyarrow.RecordBatch.from_pylist(values, arrow_schema(TABLE))


def task(lake: Lake, run: int, *batches: Sequence[int]) -> list[StagedFile]:
    """The files of one attempt of a task."""
    with closing(HourFiles(lake.staging(run), TABLE)) as files:
        for hours in batches:
            files.add(rows(hours))
    return files.finished


def test_only_the_files_of_named_attempts_are_in_the_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with exclusive_writer(lake) as writer:
        run = writer.next_run()
        task(lake, run, [HOUR, HOUR + 1])  # an attempt that Spark lost and repeats
        named = task(lake, run, [HOUR, HOUR + 1], [HOUR])
        assert writer.place(MINUTE, run, named) == [HOUR, HOUR + 1]
        snapshot = Snapshot(run=run, parts={MINUTE: {HOUR: [run], HOUR + 1: [run]}})
        lake.commit(snapshot)
        task(lake, run, [HOUR])  # an attempt that ends after the commit
        found = {
            folder.parent.name: [file for file in folder.glob("*") if file.suffix == ".parquet"]
            for folder in lake.folders(MINUTE, snapshot.parts[MINUTE])
        }
        assert [len(files) for files in found.values()] == [1, 1]
        for files, count in zip(found.values(), (2, 1), strict=True):
            sql = "SELECT sum(sends) FROM read_parquet($files, hive_partitioning = false)"
            assert duckdb.execute(sql, {"files": [str(files[0])]}).fetchall() == [(count,)]
        delete_unreferenced(lake, snapshot)
        assert not lake.staging(run).exists()
        assert all(file.is_file() for files in found.values() for file in files)


def test_replaced_files_stay_for_open_readers_until_the_next_search(tmp_path: Path) -> None:
    lake = Lake(tmp_path)

    def on_disk() -> list[int]:
        return sorted(run for _hour, run, _path in lake.on_disk(MINUTE))

    with exclusive_writer(lake) as writer:
        replaced: set[Path] = set()
        for expected in ([1], [1, 2], [2, 3]):
            run = writer.next_run()
            writer.place(MINUTE, run, task(lake, run, [HOUR]))
            snapshot = Snapshot(run=run, parts={MINUTE: {HOUR: [run]}})
            lake.commit(snapshot)
            replaced = delete_unreferenced(lake, snapshot, among=replaced)
            assert on_disk() == expected
        assert delete_unreferenced(lake, snapshot) == set()
        assert on_disk() == [3]


def test_files_and_buffers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hour_files, "BUFFER_BYTES", 1)
    monkeypatch.setattr(hour_files, "FILE_BYTES", 1)
    monkeypatch.setattr(hour_files, "ROWS_PER_GROUP", 1)
    lake = Lake(tmp_path)
    files = task(lake, 1, *[[HOUR, HOUR]] * 5)
    assert [hour for hour, _name in files] == [HOUR] * 5
    staged = [ParquetFile(lake.staging(1) / name) for _hour, name in files]
    counts = [(file.metadata.num_rows, file.metadata.num_row_groups) for file in staged]
    assert counts == [(2, 2)] * 5


def test_an_index_names_the_row_groups_of_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hour_files, "ROWS_PER_GROUP", 2)
    names = ["A", "B", "A", "C,D", None, "B"]
    events = pyarrow.RecordBatch.from_pylist(
        [{"event_ms": HOUR * HOUR_MS, "msg_id": name} for name in names], arrow_schema(EVENTS)
    )
    with closing(HourFiles(tmp_path, EVENTS, hashes=message_hashes)) as files:
        files.add(events)
    file = tmp_path / files.finished[0][1]

    def groups(*wanted: str) -> list[int] | None:
        rows = [{"msg_id": name} for name in wanted]
        return row_groups_with(
            file, message_hashes(pyarrow.Table.from_pylist(rows, arrow_schema(EVENTS)))
        )

    assert [groups(name) for name in "ABCDE"] == [[0, 1], [0, 2], [1], [1], []]
    assert groups("C", "B") == groups("C", "B", *"EFGHIJK") == [0, 1, 2]
    assert groups() == []
    index_of(file).unlink()
    assert groups("E") is None
