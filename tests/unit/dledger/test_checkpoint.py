"""The commit index of a member between two runs."""

from pathlib import Path

import pytest

from core_broker.dledger.checkpoint import load_commit_index
from core_broker.dledger.state_files import (
    TermAndVote,
    load_committed,
    load_term,
    save_committed,
    save_term,
)

SAVED = TermAndVote(3, "n1")


async def test_a_commit_index_behind_the_log_is_lowered_on_the_disk(tmp_path: Path) -> None:
    """Else another power cut would count the entries that replace the lost ones as committed."""
    path = tmp_path / "checkpoint"
    save_committed(path, 44, 41)
    save_term(tmp_path / "currterm", SAVED)
    found = await load_commit_index(tmp_path, SAVED, 35)
    assert found == (TermAndVote(3, "n1", is_new=True), 35)
    assert load_committed(path) == 35
    assert load_term(tmp_path / "currterm") == found.term_and_vote


async def test_a_commit_index_within_the_log_stays(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert await load_commit_index(tmp_path, SAVED, 50) == (SAVED, -1)
    assert not path.exists()
    save_committed(path, 44, 41)
    for last in (41, 50):
        assert await load_commit_index(tmp_path, SAVED, last) == (SAVED, 41)
    assert path.read_text() == "endIndex=44\ncommittedIndex=41\n"
    assert not (tmp_path / "currterm").exists()


@pytest.mark.parametrize("name", ["currterm", "checkpoint"])
async def test_a_loss_that_cannot_be_written_is_an_error(tmp_path: Path, name: str) -> None:
    """A start that ends before all is written finds the loss again."""
    path = tmp_path / "checkpoint"
    save_committed(path, 44, 41)
    (tmp_path / f"{name}.tmp").mkdir()
    with pytest.raises(OSError, match="directory"):
        await load_commit_index(tmp_path, SAVED, 35)
    assert load_committed(path) == 41
