"""The seam to the real disk."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import core_broker.store.files as module
from core_broker.errors import StoreLocked
from core_broker.fastpath import has_kernel
from core_broker.store.files import DiskFiles, DiskUsage, SyncFailed, read_file, replace_file


@pytest.fixture
def files() -> DiskFiles:
    return DiskFiles()


def test_what_is_written_is_read_at_its_place(files: DiskFiles, tmp_path: Path) -> None:
    file = files.open(tmp_path / "f", create=True)
    file.truncate(100)
    file.pwrite(b"abc", 10)
    assert file.pread(5, 9) == b"\0abc\0"
    assert file.pread(10, 95) == bytes(5)
    assert files.size(tmp_path / "f") == 100
    file.sync()
    file.close()


def test_a_short_write_of_the_system_is_carried_on(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(tmp_path / "f", create=True)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, data[:7], at))
    file.pwrite(b"0123456789" * 3, 0)
    assert file.pread(30, 0) == b"0123456789" * 3
    file.close()


@pytest.fixture(params=["compiled", "plain"])
def zero_writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros are written both ways."""
    if request.param == "plain":
        monkeypatch.setattr(module, "write_zeros", None)
    elif not has_kernel():
        pytest.skip("the kernel is not compiled, or switched off")


@pytest.mark.parametrize(("offset", "size"), [(0, 1), (5, 65_536), (65_535, 2), (1, 200_000)])
@pytest.mark.usefixtures("zero_writer")
def test_zeros_go_where_they_belong_and_nowhere_else(
    files: DiskFiles, tmp_path: Path, offset: int, size: int
) -> None:
    file = files.open(tmp_path / "a", create=True)
    file.pwrite(b"x" * 300_000, 0)
    file.write_zeros(offset, size)
    rest = 300_000 - offset - size
    assert file.pread(300_001, 0) == b"x" * offset + bytes(size) + b"x" * rest
    file.close()


@pytest.mark.usefixtures("zero_writer")
def test_zeros_that_cannot_be_written_are_told(files: DiskFiles, tmp_path: Path) -> None:
    file = files.open(tmp_path / "a", create=True)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write_zeros(0, 100_000)


def test_open_does_not_create_unless_asked(files: DiskFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(tmp_path / "absent")


def test_who_has_a_file_open_reads_it_while_it_is_removed_slowly(
    files: DiskFiles, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    file = files.open(path, create=True)
    file.pwrite(b"x" * 100_000, module.EVICTED_BYTES)
    files.remove_slowly(path)
    assert not path.exists()
    assert file.pread(10, module.EVICTED_BYTES + 99_995) == b"xxxxx"
    file.close()
    files.remove_slowly(path)  # a missing file is no error


def test_a_failing_sync_is_told_apart(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    file = files.open(tmp_path / "f", create=True)
    with pytest.raises(SyncFailed):
        file.sync()
    with pytest.raises(SyncFailed):
        files.sync_dir(tmp_path)
    file.close()


def test_names_are_sorted_and_missing_things_may_be_removed(
    files: DiskFiles, tmp_path: Path
) -> None:
    for name in ("b", "a"):
        files.open(tmp_path / name, create=True).close()
    assert files.names(tmp_path) == ["a", "b"]
    assert files.names(tmp_path / "absent") == []
    files.remove(tmp_path / "absent")
    files.remove_tree(tmp_path / "absent")
    files.make_dir(tmp_path / "x" / "y")
    files.remove_tree(tmp_path / "x")
    assert files.names(tmp_path) == ["a", "b"]


def test_usage_counts_as_df_does() -> None:
    assert DiskUsage(used=30, usable=70).ratio == 0.3
    assert DiskUsage(used=0, usable=0).ratio == 0.0


def test_a_file_is_replaced_whole(files: DiskFiles, tmp_path: Path) -> None:
    path = tmp_path / "f"
    replace_file(files, path, b"old and long")
    replace_file(files, path, b"new")
    assert read_file(files, path) == b"new"
    assert files.names(tmp_path) == ["f"]


def test_a_second_store_of_this_process_is_refused(files: DiskFiles, tmp_path: Path) -> None:
    lock = files.lock(tmp_path / "lock")
    with pytest.raises(StoreLocked, match="in use by another broker"):
        files.lock(tmp_path / "lock")
    assert (tmp_path / "lock").read_bytes() == b"lock"
    lock.release()
    files.lock(tmp_path / "lock").release()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_removing_the_lock_file_does_not_unlock_the_folder(
    files: DiskFiles, tmp_path: Path, is_replaced: bool
) -> None:
    lock = files.lock(tmp_path / "lock")
    (tmp_path / "lock").unlink()
    if is_replaced:
        (tmp_path / "lock").write_bytes(b"lock")
    with pytest.raises(StoreLocked, match="in use by another broker"):
        files.lock(tmp_path / "lock")
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from core_broker.store.store_lock import DiskLock\n"
        "DiskLock(Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "StoreLocked" in second.stderr
    lock.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_another_process_sees_the_lock_as_java_would(files: DiskFiles, tmp_path: Path) -> None:
    lock = files.lock(tmp_path / "lock")
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    lock.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
