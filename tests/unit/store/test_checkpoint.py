"""Checkpoints: their bytes, and damaged files."""

import json
from pathlib import Path
from typing import Any

import pytest

from core_broker.store.checkpoint import (
    Checkpoint,
    DispatchCheckpoint,
    load_checkpoint,
    load_dispatch_checkpoint,
    save_checkpoint,
    save_dispatch_checkpoint,
)
from core_broker.store.files import DiskFiles

FILES = DiskFiles()


def test_three_times_and_zeros_to_the_end_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    save_checkpoint(FILES, path, Checkpoint(1_700_000_000_001, 2, 3))
    data = path.read_bytes()
    assert len(data) == 4096
    assert data[:24] == bytes.fromhex("0000018bcfe56801 0000000000000002 0000000000000003")
    assert not any(data[24:])
    assert load_checkpoint(FILES, path) == Checkpoint(1_700_000_000_001, 2, 3)


def test_recovery_begins_three_seconds_before_the_oldest_flush() -> None:
    assert Checkpoint(10_000, 8_000, 1_000).recover_from_timestamp() == 5_000
    assert Checkpoint(10_000, 8_000, 7_000).recover_from_timestamp(with_index=True) == 4_000
    assert Checkpoint(1, 1, 1).recover_from_timestamp() == 0


def test_a_missing_or_short_checkpoint_counts_as_zeros(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert load_checkpoint(FILES, path) == Checkpoint()
    path.write_bytes(b"1234")
    assert load_checkpoint(FILES, path) == Checkpoint()


def test_the_own_checkpoint_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "dispatchCheckpoint.json"
    known = DispatchCheckpoint(4711, 1024, 4600, {"T": {0: (3, 9)}}, {"20231114221320000": 4000})
    save_dispatch_checkpoint(FILES, path, known)
    assert load_dispatch_checkpoint(FILES, path) == known


GOOD: dict[str, object] = {
    "physicalOffset": 1,
    "minPhysicalOffset": 0,
    "lastRecordOffset": 0,
    "queueOffsets": {},
    "indexEndOffsets": {},
}
BAD_CHANGES: tuple[dict[str, Any], ...] = (
    {"physicalOffset": "x"},
    {"lastRecordOffset": None},
    {"queueOffsets": []},
    {"queueOffsets": {"T": {"0": 5}}},
    {"queueOffsets": {"T": {"x": [0, 5]}}},
    {"indexEndOffsets": 3},
)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"physicalOffset": 1}',
        *(json.dumps(GOOD | change).encode() for change in BAD_CHANGES),
    ],
)
def test_an_own_checkpoint_that_makes_no_sense_is_left_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dispatchCheckpoint.json"
    assert load_dispatch_checkpoint(FILES, path) is None
    path.write_text(json.dumps(GOOD))
    assert load_dispatch_checkpoint(FILES, path) == DispatchCheckpoint(1, 0, 0)
    path.write_bytes(content)
    assert load_dispatch_checkpoint(FILES, path) is None
