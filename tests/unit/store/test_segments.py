"""Segment files: names, sizes, and zeros ahead of the writer."""

import threading
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.store.files import DiskFiles
from core_broker.store.segments import (
    ZERO_STEP,
    OpenFiles,
    Segment,
    create_segment,
    list_segments,
    segment_path,
)

FILES = DiskFiles()


def make(folder: Path, start: int, size: int = 100) -> Segment:
    segment = create_segment(FILES, folder, start, size)
    segment.file.close()
    return segment


def starts(folder: Path) -> list[int]:
    return list_segments(FILES, folder, 100, "mappedFileSizeCommitLog")


def test_a_name_is_the_offset_in_twenty_digits(tmp_path: Path) -> None:
    assert segment_path(tmp_path, 1073741824).name == "00000000001073741824"


def test_segments_are_found_in_order_and_may_begin_anywhere(tmp_path: Path) -> None:
    make(tmp_path, 300)
    make(tmp_path, 200)
    (tmp_path / "notes.txt").write_text("not a segment")
    assert starts(tmp_path) == [200, 300]


def test_an_empty_last_file_is_removed(tmp_path: Path) -> None:
    make(tmp_path, 0)
    segment_path(tmp_path, 100).touch()
    assert starts(tmp_path) == [0]
    assert not segment_path(tmp_path, 100).exists()


def test_another_size_is_refused_and_the_setting_named(tmp_path: Path) -> None:
    make(tmp_path, 0, size=99)
    make(tmp_path, 100)
    with pytest.raises(StoreCorrupt, match="99 bytes, but mappedFileSizeCommitLog is 100"):
        starts(tmp_path)


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    make(tmp_path, 0)
    make(tmp_path, 200)
    with pytest.raises(StoreCorrupt, match="a segment beginning at 100 is missing"):
        starts(tmp_path)


def test_at_most_so_many_files_are_open(tmp_path: Path) -> None:
    paths = [make(tmp_path, start).path for start in (0, 100, 200)]
    pool = OpenFiles(FILES, limit=2)
    first = pool.get(paths[0])
    assert pool.get(paths[1]) is not first
    assert pool.get(paths[0]) is first
    pool.get(paths[2])  # closes the second, which was used longest ago
    assert pool.get(paths[0]) is first
    pool.forget(paths[0])
    assert pool.get(paths[0]) is not first
    pool.close()


def test_zeros_never_overwrite_what_the_writer_reserved(tmp_path: Path) -> None:
    size = 3 * ZERO_STEP
    segment = create_segment(FILES, tmp_path, 0, size)
    assert segment.fill_step(size, is_synced=False)
    segment.reserve(ZERO_STEP + 500)
    segment.write(b"x" * 500, ZERO_STEP)
    while segment.fill_step(size, is_synced=True):
        pass
    assert segment.filled == size
    assert segment.file.pread(502, ZERO_STEP - 1) == b"\0" + b"x" * 500 + b"\0"
    segment.file.close()


def test_the_helper_and_the_writer_may_race(tmp_path: Path) -> None:
    size = 16 * ZERO_STEP
    segment = create_segment(FILES, tmp_path, 0, size)

    def fill() -> None:
        while segment.fill_step(size, is_synced=False):
            pass

    helper = threading.Thread(target=fill)
    helper.start()
    step = ZERO_STEP // 2
    for offset in range(0, size, step):
        segment.reserve(offset + step)
        segment.write(b"x" * step, offset)
    helper.join()
    assert all(segment.file.pread(step, at) == b"x" * step for at in range(0, size, step))
    segment.file.close()


def test_a_sealed_segment_is_left_alone(tmp_path: Path) -> None:
    segment = create_segment(FILES, tmp_path, 0, ZERO_STEP)
    segment.seal()
    assert not segment.fill_step(ZERO_STEP, is_synced=False)
    segment.file.close()


def test_a_cut_leaves_zeros_to_the_end(tmp_path: Path) -> None:
    segment = create_segment(FILES, tmp_path, 1000, 100)
    segment.reserve(1100)
    segment.write(b"x" * 100, 1000)
    segment.cut(1030)
    assert segment.file.pread(100, 0) == b"x" * 30 + bytes(70)
    segment.file.close()
