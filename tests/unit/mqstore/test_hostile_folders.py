"""Unexpected and unreadable entries in a store folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.listing import list_folder
from core_broker.mqstore.report import Report
from core_broker.mqstore.sizes import find_sizes
from core_broker.mqstore.verifying import verify
from core_broker.store.segments import segment_path
from tests.support.stores import SEGMENT_BYTES
from tests.unit.mqstore.conftest import sizes_of

Check = Callable[[], Report]
#: Digits of another script: accepted by int(), invalid in a file name.
ARABIC_ZEROS = "\u0660" * 20
PATHS = (
    "commitlog/00000000000000000000",
    "consumequeue/TopicTest/0/00000000000000000000",
    "index",
    "checkpoint",
    "dispatchCheckpoint.json",
    "config/topics.json",
)


def in_place_of(root: Path, path_name: str) -> Path:
    """Remove a file and return its path."""
    path = root / path_name
    if path.is_dir():
        path = min(path.iterdir())
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("path_name", PATHS)
def test_a_folder_in_the_place_of_a_file(root: Path, check: Check, path_name: str) -> None:
    path = in_place_of(root, path_name)
    path.mkdir()
    report = check()
    assert str(path.relative_to(root)) in {each.file for each in report.problems}
    list_folder(StoreFolder(root), sizes_of(root))


@pytest.mark.parametrize("path_name", PATHS)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    root: Path, check: Check, path_name: str
) -> None:
    path = in_place_of(root, path_name)
    os.mkfifo(path)
    assert str(path.relative_to(root)) in {each.file for each in check().problems}
    list_folder(StoreFolder(root), sizes_of(root))


@pytest.mark.parametrize("path_name", PATHS[:3])
def test_a_link_that_leads_nowhere(root: Path, check: Check, path_name: str) -> None:
    path = in_place_of(root, path_name)
    path.symlink_to("nowhere")
    name = str(path.relative_to(root))
    assert any(each.file == name and "No such file" in each.reason for each in check().problems)


def test_a_link_to_the_file_is_as_good_as_the_file(
    root: Path, check: Check, tmp_path: Path
) -> None:
    path = root / PATHS[0]
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert check().is_clean


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("path_name", PATHS[:2])
def test_a_file_that_may_not_be_read(root: Path, check: Check, path_name: str) -> None:
    (root / path_name).chmod(0)
    problems = {each.file: each.reason for each in check().problems}
    assert "cannot be read: Permission denied" in problems[path_name]


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue", "consumequeue/Plain/0", "index"])
@pytest.mark.parametrize(
    "name", ["odd", "0000", "-0000000000000000001", ARABIC_ZEROS, "a\nb", "x\udcff"]
)
def test_names_that_are_no_numbers(root: Path, check: Check, folder: str, name: str) -> None:
    (root / folder / name).write_bytes(b"")
    (problem,) = check().problems
    assert problem.file.startswith(folder)
    problem.file.encode()


@pytest.mark.parametrize("start", [SEGMENT_BYTES * 2**48, SEGMENT_BYTES * 2**50, 10**20 - 1])
def test_offsets_beyond_the_maximum(root: Path, check: Check, start: int) -> None:
    for folder, other in (("commitlog", SEGMENT_BYTES), ("consumequeue/TopicTest/0", 400)):
        path = segment_path(root / folder, other)
        path.rename(segment_path(root / folder, start))
    report = check()
    assert {f"commitlog/{start:020d}", f"consumequeue/TopicTest/0/{start:020d}"} <= {
        each.file for each in report.problems
    }
    list_folder(StoreFolder(root), sizes_of(root))


def test_files_of_a_few_bytes_only(root: Path) -> None:
    for path in root.rglob("0*"):
        if path.is_file():
            path.write_bytes(b"\1\2\3\4\5\6\7")
    report = verify(StoreFolder(root), find_sizes(StoreFolder(root), {}))
    assert report.problem_count > 0


def test_units_of_a_missing_file_are_one_problem(root: Path, check: Check) -> None:
    (root / "consumequeue/TopicTest/0/00000000000000000000").unlink()
    (problem,) = check().problems[:1]
    assert problem.file == "consumequeue/TopicTest/0/00000000000000000000"


def test_an_empty_last_file_is_only_noted(root: Path, check: Check) -> None:
    segment_path(root / "commitlog", 2 * SEGMENT_BYTES).touch()
    report = check()
    assert report.problems == []
    assert report.notes == [
        f"commitlog/{2 * SEGMENT_BYTES:020d} is empty; the next start removes the file."
    ]


@pytest.mark.parametrize("size", [1, SEGMENT_BYTES - 1, SEGMENT_BYTES + 1, 3 * SEGMENT_BYTES])
def test_segments_of_odd_size(root: Path, check: Check, size: int) -> None:
    path = segment_path(root / "commitlog", SEGMENT_BYTES)
    os.truncate(path, size)
    reasons = [each.reason for each in check().problems if each.file.endswith(path.name)]
    assert f"the file has {size} bytes, not {SEGMENT_BYTES}" in reasons


@given(content=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_tables_and_checkpoints_of_any_bytes(root: Path, content: bytes) -> None:
    (root / "config").mkdir(exist_ok=True)
    for name in ("topics", "subscriptionGroup", "consumerOffset", "delayOffset", "consumerFilter"):
        (root / "config" / f"{name}.json").write_bytes(content)
    for name in ("checkpoint", "dispatchCheckpoint.json", "lock", "abort"):
        (root / name).write_bytes(content)
    report = verify(StoreFolder(root), sizes_of(root))
    assert report.problem_count >= 1
    list_folder(StoreFolder(root), sizes_of(root))


@given(pieces=st.lists(st.binary(min_size=1, max_size=200), max_size=8), seed=st.integers(0, 2**16))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_log_of_any_bytes(root: Path, pieces: list[bytes], seed: int) -> None:
    whole = bytearray((root / PATHS[0]).read_bytes())
    for number, piece in enumerate(pieces):
        at = (seed * (number + 1) * 7919) % (len(whole) - len(piece))
        whole[at : at + len(piece)] = piece
    copy = root.parent / "fuzzed"
    (copy / "commitlog").mkdir(parents=True, exist_ok=True)
    (copy / PATHS[0]).write_bytes(whole)
    report = verify(StoreFolder(copy), sizes_of(root))
    assert all(each.offset >= 0 for each in report.problems)
