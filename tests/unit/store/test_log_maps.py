"""Mappings of the log: kept while used, unmapped piece by piece."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.store import log_maps
from core_broker.store.files import DiskFiles
from core_broker.store.log_maps import PIECE_BYTES, LogMaps
from core_broker.store.segments import OpenFiles

MAPS = Path("/proc/self/maps")
SEGMENT_BYTES = 3 * PIECE_BYTES

pytestmark = [
    pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here"),
    pytest.mark.skipif(not MAPS.exists(), reason="only Linux tells what is mapped"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty segment."""
    path = tmp_path / "0"
    path.touch()
    os.truncate(path, SEGMENT_BYTES)
    return path


@pytest.fixture
def maps(path: Path) -> Iterator[LogMaps]:
    """Maps with all pieces of the segment asked for in turn."""
    open_files = OpenFiles(DiskFiles(), 8)
    maps = LogMaps(open_files, SEGMENT_BYTES)
    open_files.know(path)
    for number in range(SEGMENT_BYTES // PIECE_BYTES):
        assert maps.get(path, 0, number * PIECE_BYTES) is not None
    yield maps
    maps.close()
    assert _mapped(path) == 0
    open_files.close()


def test_what_is_forgotten_is_let_go_piece_by_piece(path: Path, maps: LogMaps) -> None:
    assert maps.get(path, 0, PIECE_BYTES - 1) is maps.get(path, 0, 0)
    assert (len(maps), _mapped(path)) == (3, 3)
    maps.forget(0)
    assert (len(maps), _mapped(path)) == (0, 3)
    assert not maps.let_go(2)
    assert _mapped(path) == 1
    assert maps.let_go(2)
    assert _mapped(path) == 0
    assert maps.get(path, 0, 0) is not None


@pytest.fixture
def few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one piece at a time, and keep two dropped ones."""
    monkeypatch.setattr(log_maps, "PIECES_MAX", 1)
    monkeypatch.setattr(log_maps, "DROPPED_MAX", 2)


@pytest.mark.usefixtures("few_pieces")
def test_a_dropped_piece_stays_mapped_until_the_end_of_the_iteration(
    path: Path, maps: LogMaps
) -> None:
    assert (len(maps), _mapped(path)) == (1, 3)
    assert maps.get(path, 0, 0) is not None
    assert (len(maps), _mapped(path)) == (1, 3)
    assert maps.let_go(1)
    assert _mapped(path) == 2


@pytest.mark.usefixtures("few_pieces")
def test_a_dropped_piece_of_a_removed_segment_is_unmapped_before_the_file_goes(
    path: Path, maps: LogMaps
) -> None:
    maps.forget(0)
    assert not maps.let_go(2)
    assert maps.let_go(1)
    assert _mapped(path) == 0


def _mapped(path: Path) -> int:
    return sum(line.endswith(str(path)) for line in MAPS.read_text().splitlines())
