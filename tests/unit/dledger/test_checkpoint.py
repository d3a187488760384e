"""The commit index of a member between two runs."""

from pathlib import Path

import pytest

from core_broker.dledger.checkpoint import load_commit_index
from core_broker.dledger.state_files import load_committed, save_committed


async def test_a_commit_index_behind_the_log_is_lowered_on_the_disk(tmp_path: Path) -> None:
    """Else another power cut would count the entries that replace the lost ones as committed."""
    path = tmp_path / "checkpoint"
    save_committed(path, 44, 41)
    assert await load_commit_index(path, 35) == 35
    assert load_committed(path) == 35


async def test_a_commit_index_within_the_log_stays(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert await load_commit_index(path, 50) == -1
    assert not path.exists()
    save_committed(path, 44, 41)
    for last in (41, 50):
        assert await load_commit_index(path, last) == 41
    assert path.read_text() == "endIndex=44\ncommittedIndex=41\n"


async def test_a_commit_index_that_cannot_be_lowered_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    save_committed(path, 44, 41)
    (tmp_path / "checkpoint.tmp").mkdir()
    with pytest.raises(OSError, match="directory"):
        await load_commit_index(path, 35)
