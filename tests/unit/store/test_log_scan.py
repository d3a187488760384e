"""Scanning the commit log: valid and invalid records."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.message.model import MessageInner
from core_broker.message.record import encode_record
from core_broker.message.record_layout import (
    BODY_LENGTH_AT,
    HEAD,
    MAGIC_AT,
    PHYSICAL_OFFSET_AT,
    STORE_TIMESTAMP_AT,
)
from core_broker.store.commit_log import CommitLog
from core_broker.store.files import DiskFiles
from core_broker.store.log_scan import SECTOR, LogScan, find_record
from core_broker.store.segments import OpenFiles, segment_path
from tests.support.stores import NOW_MS, message

SIZE = 8192


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CommitLog]:
    files = DiskFiles()
    log = CommitLog(files, tmp_path, SIZE, OpenFiles(files, 8))
    log.load()
    log.open_at(0, synced_until=0, must_cut=False)
    yield log
    log.close()


def encoded(log: CommitLog, inner: MessageInner) -> bytes:
    return encode_record(
        inner, queue_offset=0, physical_offset=log.position, store_timestamp=NOW_MS
    )


def append(log: CommitLog, inner: MessageInner) -> int:
    record = encoded(log, inner)
    if not log.fits(len(record)):
        log.roll()
        record = encoded(log, inner)
    offset = log.position
    log.stage(record)
    log.reserve_staged()
    log.write_staged()
    return offset


def overwrite(log: CommitLog, offset: int, data: bytes) -> None:
    log.active.file.pwrite(data, offset - log.active.start)


def scanned(log: CommitLog, start: int = 0, *, check_crc: bool = True) -> tuple[list[int], LogScan]:
    scan = LogScan(log, start, check_crc=check_crc)
    return [each.offset for each in scan], scan


def test_all_records_are_found_across_segments(log: CommitLog) -> None:
    offsets = [append(log, message(number, body=b"x" * 900)) for number in range(20)]
    found, scan = scanned(log)
    assert (found, scan.flaw, scan.end) == (offsets, None, log.written)
    assert scanned(log, offsets[5])[0] == offsets[5:]


def test_what_dispatching_needs_is_read(log: CommitLog) -> None:
    inner = message(5, topic="Näme", queue_id=3, body=b"\0" * 2000)
    inner.born_host = ("2001:db8::1", 1)
    inner.sys_flag = 8
    offset = append(log, inner)
    (record,) = LogScan(log, 0, check_crc=True)
    assert (record.offset, record.topic, record.queue_id) == (offset, "Näme", 3)
    assert record.sys_flag == 8 | 0x10
    assert record.store_timestamp == NOW_MS
    assert b"UNIQ_KEY" in record.properties


def test_a_long_topic_has_the_second_layout(log: CommitLog) -> None:
    append(log, message(0, topic="%RETRY%" + "g" * 200))
    assert [each.topic for each in LogScan(log, 0, check_crc=True)] == ["%RETRY%" + "g" * 200]


def test_a_record_larger_than_a_chunk_is_read_whole(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.store.log_scan.CHUNK_BYTES", 1000)
    offsets = [append(log, message(number, body=b"x" * 3000)) for number in range(4)]
    assert scanned(log)[0] == offsets


FLAWS = [
    (MAGIC_AT, b"\1\2\3\4", "no record begins here"),
    (0, struct.pack(">I", 20), "a record of 20 bytes cannot lie here"),
    (0, struct.pack(">I", 2**31), "cannot lie here"),
    (PHYSICAL_OFFSET_AT, struct.pack(">q", 7), "a record of offset 7 lies here"),
    (STORE_TIMESTAMP_AT, bytes(8), "it has no store timestamp"),
    (BODY_LENGTH_AT, struct.pack(">I", 2**31), "the body runs past the record"),
    (BODY_LENGTH_AT, struct.pack(">I", 3), "its lengths do not add up"),
    (HEAD.size + 2, b"#", "its body does not match the checksum"),
    (HEAD.size + 10, b"/", "its topic is damaged"),
    (HEAD.size + 10, b"\xff\xfe", "its topic is damaged"),
]


@pytest.mark.parametrize(("at", "damage", "reason"), FLAWS)
def test_a_flaw_ends_the_scan_and_is_named(
    log: CommitLog, at: int, damage: bytes, reason: str
) -> None:
    first = append(log, message(1))
    second = append(log, message(2))
    append(log, message(3))
    overwrite(log, second + at, damage)
    offsets, scan = scanned(log)
    assert offsets == [first]
    assert scan.end == second
    assert scan.flaw is not None
    assert reason in scan.flaw.reason


def test_the_checksum_can_be_left_out(log: CommitLog) -> None:
    offset = append(log, message(1))
    overwrite(log, offset + 90, b"#")
    assert scanned(log, check_crc=False)[0] == [offset]


def test_zeros_end_the_log_without_a_flaw(log: CommitLog) -> None:
    append(log, message(1))
    log.written = SIZE  # as at a start, when the end is not known
    offsets, scan = scanned(log)
    assert (offsets, scan.flaw) == ([0], None)


def test_properties_that_lack_their_end_are_torn_unless_a_record_follows(log: CommitLog) -> None:
    inner = message(1, properties={"K": "v" * 30})
    offset = append(log, inner)
    end = log.written
    overwrite(log, end - 3, bytes(3))
    assert scanned(log)[0] == []
    append(log, message(2))
    assert scanned(log)[0] == [offset, end]


def test_properties_that_lack_a_sector_are_torn(log: CommitLog) -> None:
    append(log, message(1, properties={"K": "v" * 3000}))
    overwrite(log, 2 * SECTOR, bytes(SECTOR))
    assert scanned(log)[1].flaw == (0, "a part of its properties did not reach the disk")


def test_a_record_is_found_behind_damage(log: CommitLog) -> None:
    append(log, message(1))
    second = append(log, message(2))
    third = append(log, message(3))
    overwrite(log, second, b"\xda\xa3\x20\xa7" * 10)
    assert find_record(log, second, log.written) == third
    assert find_record(log, third + 1, log.written) is None
    assert find_record(log, second, third) is None


def test_a_record_is_found_across_the_end_of_a_read(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, message(1, body=b"x" * 500))
    second = append(log, message(2))
    for chunk in range(second - 30, second + 70):
        monkeypatch.setattr("core_broker.store.log_scan.CHUNK_BYTES", chunk)
        assert find_record(log, 1, log.written) == second


@settings(deadline=None, max_examples=60)
@given(st.binary(min_size=1, max_size=400), st.integers(0, 600))
def test_any_bytes_end_the_scan_in_order(tmp_path_factory: object, data: bytes, at: int) -> None:
    folder: Path = tmp_path_factory.mktemp("log")  # type: ignore[attr-defined]
    files = DiskFiles()
    log = CommitLog(files, folder, SIZE, OpenFiles(files, 8))
    log.load()
    log.open_at(0, synced_until=0, must_cut=False)
    offsets = [append(log, message(number)) for number in range(4)]
    overwrite(log, at, data)
    log.written = SIZE
    found, scan = scanned(log)
    assert found[: len(offsets)] == offsets[: len(found)]
    assert scan.end <= SIZE
    assert all(isinstance(each, int) for each in (find_record(log, 0, SIZE) or 0,))
    log.close()


@pytest.mark.parametrize("place", [40 * 1024 * 1024, 40 * 1024 * 1024 + 2, 61_234_567])
def test_what_was_never_written_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    size = 64 * 1024 * 1024
    record = encode_record(
        message(1), queue_offset=0, physical_offset=place, store_timestamp=NOW_MS
    )
    for start in (0, size):
        with segment_path(tmp_path, start).open("wb") as file:
            file.truncate(size)
            if not start:
                file.seek(place)
                file.write(record)
    files = DiskFiles()
    open_files = OpenFiles(files, 8)
    log = CommitLog(files, tmp_path, size, open_files)
    log.load()
    reads = 0
    read = log.read

    def counted(offset: int, count: int) -> bytes:
        nonlocal reads
        reads += 1
        return read(offset, count)

    monkeypatch.setattr(log, "read", counted)
    assert find_record(log, 0, 2 * size) == place
    assert find_record(log, place + 1, 2 * size) is None
    if log.next_data(0) > 0:  # the file system tells
        assert reads < 20
    open_files.close()
