"""The commit log: staging, rolling over, blank records, reading."""

import errno
from pathlib import Path

import pytest

from core_broker.store.commit_log import FILL_AHEAD_MAX, CommitLog
from core_broker.store.files import DiskFiles
from core_broker.store.segments import OpenFiles
from core_broker.store.simulated_files import BLOCK, SimulatedFiles

SIZE = 1000


def opened(folder: Path, at: int = 0) -> CommitLog:
    files = DiskFiles()
    log = CommitLog(files, folder, SIZE, OpenFiles(files, 8))
    log.load()
    log.open_at(at, synced_until=at, must_cut=False)
    return log


def append(log: CommitLog, record: bytes) -> int:
    if not log.fits(len(record)):
        log.roll()
    offset = log.position
    log.stage(record)
    return offset


def write(log: CommitLog) -> None:
    log.reserve_staged()
    log.write_staged()


def test_records_are_visible_after_the_write_and_not_before(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, b"a" * 100)
    assert (log.written, log.position, log.read(0, 100)) == (0, 100, b"")
    write(log)
    assert (log.written, log.read(0, 100)) == (100, b"a" * 100)
    log.close()


def test_a_segment_ends_with_a_blank_record_of_what_is_left(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, b"a" * 600)
    assert append(log, b"b" * 400) == SIZE
    write(log)
    # int 400 bytes left, int blank magic; the following bytes are unchanged.
    assert log.read(600, SIZE) == bytes.fromhex("00000190 cbd43194") + bytes(392)
    assert log.read(SIZE, 400) == b"b" * 400
    assert (tmp_path / "00000000000000001000").stat().st_size == SIZE
    log.close()


@pytest.mark.parametrize(("size", "fits"), [(992, True), (993, False)])
def test_eight_bytes_stay_free(tmp_path: Path, size: int, fits: bool) -> None:
    log = opened(tmp_path)
    assert log.fits(size) is fits
    log.close()


def test_several_segments_are_filled_in_one_turn(tmp_path: Path) -> None:
    log = opened(tmp_path)
    offsets = [append(log, bytes([number]) * 700) for number in range(4)]
    write(log)
    assert offsets == [0, 1000, 2000, 3000]
    assert [log.read(at, 700)[:1] for at in offsets] == [b"\0", b"\1", b"\2", b"\3"]
    log.mark_flushed(log.written)
    assert len(log.unflushed()) == 1
    assert len(log.removable()) == 3
    log.close()


def test_discarding_a_turn_leaves_no_trace(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, b"a" * 700)
    write(log)
    append(log, b"b" * 700)
    append(log, b"c" * 700)
    log.discard_staged()
    assert (log.position, log.written) == (700, 700)
    assert append(log, b"d" * 700) == SIZE
    write(log)
    assert log.read(SIZE, 700) == b"d" * 700
    log.close()


def test_reads_end_at_the_end_of_a_segment_and_of_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, b"a" * 900)
    append(log, b"b" * 100)
    write(log)
    assert len(log.read(800, 500)) == 200
    assert log.read(1050, 500) == b"b" * 50
    assert log.read(1100, 1) == b""
    assert log.read(-1, 5) == b""
    assert log.read(5000, 5) == b""
    log.close()


def test_the_oldest_segment_can_go(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for _ in range(3):
        append(log, b"a" * 900)
    write(log)
    log.mark_flushed(log.written)
    assert [each.name[-4:] for each in log.removable()] == ["0000", "1000"]
    assert log.forget_oldest().name[-4:] == "0000"
    assert log.min_offset == 1000
    assert log.read(0, 10) == b""
    log.close()


def test_an_unflushed_segment_is_not_removable(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, b"a" * 900)
    append(log, b"a" * 900)
    write(log)
    assert log.removable() == []
    log.close()


def test_opening_behind_a_cut_removes_later_segments(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for _ in range(3):
        append(log, b"a" * 900)
    write(log)
    log.close()
    log.load()
    log.open_at(1300, synced_until=0, must_cut=True)
    assert [each.name[-4:] for each in sorted(tmp_path.iterdir())] == ["0000", "1000"]
    data = (tmp_path / "00000000000000001000").read_bytes()
    assert data == b"a" * 300 + bytes(700)
    log.close()


def test_space_is_reserved_before_a_byte_is_written() -> None:
    files = SimulatedFiles(0, capacity=2 * BLOCK)
    log = CommitLog(files, Path("/log"), 4 * BLOCK, OpenFiles(files, 8))
    log.load()
    log.open_at(0, synced_until=0, must_cut=False)
    append(log, b"a" * 2 * BLOCK)
    write(log)
    append(log, b"b" * BLOCK)
    with pytest.raises(OSError, match="no space") as raised:
        log.reserve_staged()
    assert raised.value.errno == errno.ENOSPC
    log.discard_staged()
    assert files.open(Path("/log/00000000000000000000")).pread(BLOCK, 2 * BLOCK) == bytes(BLOCK)


def test_the_next_segment_is_prepared_when_the_end_comes_near(tmp_path: Path) -> None:
    log = opened(tmp_path)
    while work := log.to_fill():
        segment, limit = work
        while segment.fill_step(limit):
            pass
    assert log.active.filled == SIZE
    assert (tmp_path / "00000000000000001000").stat().st_size == SIZE
    append(log, b"a" * 900)
    append(log, b"b" * 900)
    write(log)
    assert log.read(SIZE, 900) == b"b" * 900
    log.close()


def test_the_next_segment_is_full_before_its_turn(tmp_path: Path) -> None:
    """Zeros and messages are never written to the same file."""
    size = 1024**3
    log = CommitLog(DiskFiles(), tmp_path, size, OpenFiles(DiskFiles(), 8))
    log.load()
    log.open_at(0, synced_until=0, must_cut=False)
    record = b"x" * 1_000_000
    filled: set[int] = set()
    while log.position < 3 * size:
        while work := log.to_fill():
            segment, limit = work
            filled.add(segment.start // size)
            is_written_to = segment is log.active
            assert not is_written_to or segment.start == 0
            segment.filled = limit
        if not log.fits(len(record)):
            log.roll()
            assert log.active.filled == log.active.end
        log.stage(record)
        log.written = log.position
    assert filled == {0, 1, 2, 3}


def test_what_will_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    size = 2 * FILL_AHEAD_MAX
    log = CommitLog(DiskFiles(), tmp_path, size, OpenFiles(DiskFiles(), 8))
    log.load()
    log.open_at(0, synced_until=0, must_cut=False)
    assert log.to_warm() is None
    log.position = FILL_AHEAD_MAX // 2
    assert log.to_warm() is None  # reserved blocks are not on the disk
    log.active.has_zeros = True
    log.position = FILL_AHEAD_MAX // 2
    assert log.to_warm() == (log.active, FILL_AHEAD_MAX // 2, FILL_AHEAD_MAX)
    assert log.to_warm() is None
    log.position = size - 10
    assert log.to_warm() == (log.active, size - 10, 10)
