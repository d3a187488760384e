"""The ballast grows while free memory shrinks by the same amount, and stops then."""

from pathlib import Path

import pytest

from benchmarks import ballast
from benchmarks.ballast import PIECE_BYTES, Ballast, memory_bytes

TOTAL_PIECES = 64


class Machine:
    """A machine whose free memory shrinks by a step with each poll, down to zero."""

    def __init__(self) -> None:
        self.free_pieces = 0

    def memory_bytes(self, name: str) -> int:
        if name == "MemTotal":
            return TOTAL_PIECES * PIECE_BYTES
        free = self.free_pieces
        self.free_pieces = max(0, free - 1)
        return free * PIECE_BYTES


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(ballast, "memory_bytes", made.memory_bytes)
    monkeypatch.setattr(ballast, "STEP_PIECES", 1)
    return made


@pytest.mark.parametrize("pieces", [0, 1, 40])
def test_the_ballast_reads_the_free_memory(tmp_path: Path, machine: Machine, pieces: int) -> None:
    made = Ballast(tmp_path)
    machine.free_pieces = pieces
    assert made.fill() == (pieces + 1) * PIECE_BYTES
    assert made.fill() == PIECE_BYTES
    assert made.path.stat().st_blocks == 0  # a sparse file without disk blocks
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_the_ballast_stops_at_the_size_of_the_memory(tmp_path: Path, machine: Machine) -> None:
    made = Ballast(tmp_path)
    machine.free_pieces = 10 * TOTAL_PIECES
    assert made.fill() == TOTAL_PIECES * PIECE_BYTES
    made.close()


def test_memory_of_this_machine() -> None:
    assert memory_bytes("MemTotal") > memory_bytes("MemFree") >= 0
    with pytest.raises(KeyError):
        memory_bytes("Nothing")
