"""Verification: an intact store is clean, and each kind of damage is reported with its position."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.message.record_layout import (
    BODY_CRC_AT,
    MAGIC_AT,
    PHYSICAL_OFFSET_AT,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
)
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.log_view import LogView
from core_broker.mqstore.report import Report
from core_broker.mqstore.verifying import verify
from core_broker.store.layout import StorePaths
from core_broker.store.log_scan import LogScan
from core_broker.store.unit_layout import UNIT
from tests.support.stores import SEGMENT_BYTES, Bench, message
from tests.unit.mqstore.conftest import sizes_of

Check = Callable[[], Report]
FIRST_SEGMENT = "commitlog/00000000000000000000"
FIRST_QUEUE = "consumequeue/TopicTest/0/00000000000000000000"


def flip(path: Path, at: int, bit: int = 1) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= bit
    path.write_bytes(data)


def positions(report: Report) -> list[tuple[str, int]]:
    """Return file and offset of each problem."""
    return [(problem.file, problem.offset) for problem in report.problems]


def test_an_intact_store_is_clean(check: Check) -> None:
    report = check()
    assert report.problems == []
    assert report.notes == []
    assert report.counts["records"] == report.counts["units"] == 53
    assert report.counts["indexItems"] == 150


def test_a_flipped_body_is_reported_once_where_its_record_begins(root: Path, check: Check) -> None:
    flip(root / FIRST_SEGMENT, 90)
    report = check()
    assert positions(report) == [(FIRST_SEGMENT, 0)]
    assert "does not match the checksum" in report.problems[0].reason


def test_records_behind_damage_are_still_verified(root: Path, check: Check) -> None:
    flip(root / FIRST_SEGMENT, 0)
    flip(root / FIRST_QUEUE, 2 * UNIT.size + 7)
    assert positions(check()) == [(FIRST_SEGMENT, 0), (FIRST_QUEUE, 2 * UNIT.size)]


def test_a_queue_offset_that_is_not_the_units_is_noticed(root: Path, check: Check) -> None:
    log = LogView(root / "commitlog", StoreFolder(root).segments()[0], SEGMENT_BYTES)
    record = list(LogScan(log, 0, check_crc=True))[30]
    flip(root / FIRST_SEGMENT, record.offset + QUEUE_OFFSET_AT + 7, 0x04)
    # Message 30 claims message 26's queue offset: unit 30 has no record, unit 26 the older record.
    path = "consumequeue/TopicTest/0/00000000000000000400"
    assert positions(check()) == [(path, 200), (path, 120)]


def test_a_lost_unit_at_the_end_of_a_queue_is_noticed(root: Path, check: Check) -> None:
    path = root / "consumequeue/TopicTest/0/00000000000000000400"
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes(20))
    report = check()
    assert positions(report) == [("consumequeue/TopicTest/0/00000000000000000400", 380)]
    assert "has no unit here" in report.problems[0].reason


def test_a_unit_too_many_is_noticed(root: Path, check: Check) -> None:
    path = root / "consumequeue/Plain/0/00000000000000000000"
    path.write_bytes(path.read_bytes()[:20] + UNIT.pack(100, 50, 0) + bytes(360))
    report = check()
    assert positions(report) == [("consumequeue/Plain/0/00000000000000000000", 20)]
    assert "it points to 100, 50 bytes; no such message" in report.problems[0].reason


def test_a_queue_that_is_gone_is_noticed(root: Path, check: Check) -> None:
    (root / "consumequeue/Plain/0/00000000000000000000").unlink()
    assert positions(check()) == [("consumequeue/Plain/0/00000000000000000000", 0)]


def test_a_segment_that_is_gone_is_one_problem(root: Path, check: Check) -> None:
    extra = root / "commitlog" / f"{2 * SEGMENT_BYTES:020d}"
    (root / f"commitlog/{SEGMENT_BYTES:020d}").rename(extra)
    report = check()
    assert f"a file {SEGMENT_BYTES} is missing before it" in report.problems[0].reason


def test_index_files_that_are_gone_are_noticed(root: Path, check: Check) -> None:
    newest = max((root / "index").iterdir())
    newest.unlink()
    report = check()
    assert (f"index/{newest.name}", 0) in positions(report)


def test_topics_deleted_and_created_again_are_no_problem(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(30)
    bench.store.delete_topic("TopicTest")
    bench.run_io()
    bench.put_many(5)
    bench.put_many(3, topic="Deleted")
    bench.store.delete_topic("Deleted")
    bench.run_io()
    bench.store.close()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text('{"topicConfigTable":{}}')
    report = verify(StoreFolder(tmp_path), sizes_of(tmp_path))
    assert report.problems == []
    assert report.notes == ["3 records belong to topics that were deleted."]


def test_a_store_that_was_killed_may_lag_but_not_lack(tmp_path: Path) -> None:
    bench = Bench(tmp_path, mapped_file_size_consume_queue=20 * 1000).open()
    bench.put_many(180)  # more than MISSING_KEPT records, less than one write of queue tails
    bench.store._release()  # the end of a killed process
    folder = StoreFolder(tmp_path)
    report = verify(folder, sizes_of(tmp_path))
    assert report.problems == []
    assert [note.split(" ", 1)[1] for note in report.notes] == [
        "broker did not stop in order; the next start recovers the folder.",
        "records at the end have no unit yet; a start adds them.",
        "records at the end are not in the index yet; a start adds them.",
    ]
    StorePaths(tmp_path).abort.unlink()
    assert verify(folder, sizes_of(tmp_path)).problem_count >= 180


def test_a_running_broker_is_noticed_and_not_disturbed(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(30)
    try:
        folder = StoreFolder(tmp_path)
        assert folder.is_in_use()
        report = verify(folder, sizes_of(tmp_path))
        assert report.problems == []
        assert "running" in report.notes[0]
        bench.put(message(31))
    finally:
        bench.store.close()
    assert not folder.is_in_use()


def test_a_broker_of_another_folder_on_the_same_log_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    bench = Bench(tmp_path / "a", store_path_commit_log=str(log)).open()
    bench.put_many(3)
    (tmp_path / "b").mkdir()
    try:
        folder = StoreFolder(tmp_path / "b", log)
        assert folder.is_in_use()
        assert "running" in verify(folder, sizes_of(tmp_path / "a")).notes[0]
        bench.put(message(4))
    finally:
        bench.store.close()
    assert not folder.is_in_use()


def test_problems_shown_are_bounded_and_the_rest_is_counted(root: Path) -> None:
    for each in (root / "consumequeue/TopicTest/0").iterdir():
        each.write_bytes(bytes(400))
    report = verify(StoreFolder(root), sizes_of(root), limit=7)
    assert len(report.problems) == 7
    assert report.problem_count == 40


@pytest.mark.parametrize("at", [BODY_CRC_AT, MAGIC_AT, 0, QUEUE_ID_AT, PHYSICAL_OFFSET_AT])
def test_damage_in_every_record_is_counted(root: Path, check: Check, at: int) -> None:
    path = root / FIRST_SEGMENT
    data = bytearray(path.read_bytes())
    offset = count = 0
    while size := int.from_bytes(data[offset : offset + 4]):
        if data[offset + 4] == 0xCB:
            break
        data[offset + at] ^= 0x40
        offset, count = offset + size, count + 1
    path.write_bytes(data)
    report = check()
    assert report.problem_count > 0
    assert report.counts["records"] <= 53


def test_segments_that_expired_are_no_problem(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(400)
    bench.tick(61_000)
    for segment in StoreFolder(tmp_path).segments()[0][:3]:
        os.utime(segment.path, (0, 0))
    bench.store.delete_expired_files()
    for _ in range(50):
        bench.tick()
    assert bench.store.min_offset_physical >= 3 * SEGMENT_BYTES
    bench.put_many(10, first=400)
    bench.store.close()
    report = verify(StoreFolder(tmp_path), sizes_of(tmp_path))
    assert report.problems == []
    assert report.counts["records"] == report.counts["units"] < 400


def test_after_recovery_over_damage_only_the_damage_is_left(root: Path, check: Check) -> None:
    flip(root / FIRST_SEGMENT, 90)
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    Bench(root).open().store.close()
    assert positions(check()) == [(FIRST_SEGMENT, 0)]


def test_missing_index_items_in_the_middle_are_no_lag(root: Path, check: Check) -> None:
    (root / "abort").touch()
    (root / "dispatchCheckpoint.json").unlink()
    oldest = min((root / "index").iterdir())
    oldest.unlink()
    (problem,) = check().problems[:1]
    assert "16 records from 0 on are not in the index" in problem.reason


def test_files_of_rocketmq_5_are_named_and_not_checked(root: Path, check: Check) -> None:
    (root / "timerwheel").write_bytes(b"\1" * 100)
    (root / "consumequeue_ext" / "T" / "0").mkdir(parents=True)
    (root / "consumequeue" / "%LMQ%mine" / "0").mkdir(parents=True)
    (root / "consumequeue" / "%LMQ%mine" / "0" / "00000000000000000000").write_bytes(b"\1" * 400)
    (root / "config").mkdir()
    (root / "config" / "timercheck").write_bytes(b"\xff")
    # With consumequeue_ext, a tags code can be an address.
    path = root / FIRST_QUEUE
    data = bytearray(path.read_bytes())
    data[12:20] = (-(2**63) + 4711).to_bytes(8, signed=True)
    path.write_bytes(data)
    report = check()
    assert report.problems == []
    assert report.notes == ["Not checked, being RocketMQ 5's own: consumequeue_ext, timerwheel."]


def test_a_blanked_unit_is_noticed_also_when_the_log_begins_later(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(300)
    bench.store.close()
    min((tmp_path / "commitlog").iterdir()).unlink()
    path = max((tmp_path / "consumequeue/TopicTest/0").iterdir())
    data = bytearray(path.read_bytes())
    data[100:120] = bytes(20)
    path.write_bytes(data)
    report = verify(StoreFolder(tmp_path), sizes_of(tmp_path))
    assert positions(report) == [(f"consumequeue/TopicTest/0/{path.name}", 100)]
