"""Segment files: names, sizes, and space ahead of the writer."""

import errno
import threading
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.store.files import DiskFile, DiskFiles
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
    pool.get(paths[2])  # closes the second, the least recently used
    assert pool.get(paths[0]) is first
    pool.forget(paths[0])
    assert pool.get(paths[0]) is not first
    pool.close()


def test_zeros_never_overwrite_what_the_writer_reserved(tmp_path: Path) -> None:
    size = 3 * ZERO_STEP
    segment = create_segment(FILES, tmp_path, 0, size)
    assert segment.fill_step(size)
    segment.reserve(ZERO_STEP + 500)
    segment.write(b"x" * 500, ZERO_STEP)
    while segment.fill_step(size):
        pass
    assert segment.filled == size
    assert segment.file.pread(502, ZERO_STEP - 1) == b"\0" + b"x" * 500 + b"\0"
    segment.file.close()


@pytest.mark.parametrize("can_allocate", [True, False])
def test_blocks_are_reserved_or_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_allocate: bool
) -> None:
    if not can_allocate:
        monkeypatch.setattr(DiskFile, "allocate", lambda *_: False)
    segment = create_segment(FILES, tmp_path, 0, 2 * ZERO_STEP)
    steps = 0
    while segment.allocate_step(ZERO_STEP + 500):
        steps += 1
    # The writer may wait for the lock of a zero-writing step.
    assert steps == (1 if can_allocate else 2)
    assert segment.filled == ZERO_STEP + 500
    # st_blocks shows reserved or written blocks; the file size is constant.
    assert segment.path.stat().st_blocks * 512 >= ZERO_STEP + 500
    assert segment.has_zeros is not can_allocate
    assert segment.file.pread(2 * ZERO_STEP, 0) == bytes(2 * ZERO_STEP)
    segment.file.close()


def test_the_last_of_a_disk_is_reserved_in_small_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 2 * ZERO_STEP + ZERO_STEP // 2
    allocate = DiskFile.allocate

    def allocate_what_is_left(file: DiskFile, offset: int, size: int) -> bool:
        if offset + size > left:
            raise OSError(errno.ENOSPC, "no space left on device")
        return allocate(file, offset, size)

    monkeypatch.setattr(DiskFile, "allocate", allocate_what_is_left)
    segment = create_segment(FILES, tmp_path, 0, 4 * ZERO_STEP)
    assert segment.allocate_step(4 * ZERO_STEP)
    assert segment.allocate_step(4 * ZERO_STEP)
    with pytest.raises(OSError, match="no space"):
        segment.allocate_step(4 * ZERO_STEP)
    assert segment.filled == 2 * ZERO_STEP
    segment.file.close()


@pytest.mark.parametrize("kind", ["fill_step", "allocate_step"])
def test_the_helper_and_the_writer_may_race(tmp_path: Path, kind: str) -> None:
    size = 16 * ZERO_STEP
    segment = create_segment(FILES, tmp_path, 0, size)

    def fill() -> None:
        while getattr(segment, kind)(size):
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
    assert not segment.fill_step(ZERO_STEP)
    assert not segment.allocate_step(ZERO_STEP)
    segment.file.close()


def test_a_cut_leaves_zeros_to_the_end(tmp_path: Path) -> None:
    segment = create_segment(FILES, tmp_path, 1000, 100)
    segment.reserve(1100)
    segment.write(b"x" * 100, 1000)
    segment.cut(1030)
    assert segment.file.pread(100, 0) == b"x" * 30 + bytes(70)
    segment.file.close()
