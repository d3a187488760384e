"""The simulated disk must have the documented faults, or the simulations prove nothing."""

import errno
from pathlib import Path

import pytest

from core_broker.errors import StoreLocked
from core_broker.store.files import SyncFailed
from core_broker.store.simulated_files import BLOCK, SECTOR, SimulatedFile, SimulatedFiles

FOLDER = Path("/disk")
PATH = FOLDER / "f"


def written(files: SimulatedFiles, data: bytes) -> SimulatedFile:
    file = files.open(PATH, create=True)
    file.pwrite(data, 0)
    return file


def fail(operation: str, code: int) -> "object":
    def fault(called: str, path: Path) -> None:
        if called == operation:
            raise OSError(code, "commanded", str(path))

    return fault


def test_synced_data_under_a_synced_name_survives_every_cut() -> None:
    for seed in range(20):
        files = SimulatedFiles(seed)
        written(files, b"x" * 2000).sync()
        files.sync_dir(FOLDER)
        files.power_cut()
        assert files.open(PATH).pread(3000, 0) == b"x" * 2000


def test_unsynced_data_survives_by_sectors_or_not_at_all() -> None:
    outcomes = set()
    for seed in range(60):
        files = SimulatedFiles(seed)
        file = files.open(PATH, create=True)
        file.truncate(4 * SECTOR)
        file.sync()
        files.sync_dir(FOLDER)
        file.pwrite(b"x" * 4 * SECTOR, 0)
        files.power_cut()
        data = files.open(PATH).pread(4 * SECTOR, 0)
        sectors = [data[at : at + SECTOR] for at in range(0, len(data), SECTOR)]
        assert all(each in {bytes(SECTOR), b"x" * SECTOR} for each in sectors)
        outcomes.add(tuple(each[0] for each in sectors))
    assert len(outcomes) > 4


def test_unsynced_names_may_be_lost() -> None:
    kept = 0
    for seed in range(40):
        files = SimulatedFiles(seed)
        written(files, b"x").sync()
        files.power_cut()
        kept += files.exists(PATH)
    assert 0 < kept < 40


def test_a_failed_sync_loses_the_data_although_the_next_one_succeeds() -> None:
    files = SimulatedFiles(0)
    file = written(files, b"a" * SECTOR)
    file.sync()
    files.sync_dir(FOLDER)
    file.pwrite(b"b" * SECTOR, 0)
    files.fault = fail("sync", errno.EIO)  # type: ignore[assignment]
    with pytest.raises(SyncFailed):
        file.sync()
    files.fault = None
    file.sync()
    assert file.pread(1, 0) == b"b"
    files.power_cut()
    assert files.open(PATH).pread(1, 0) == b"a"


def test_a_kill_loses_nothing_but_ends_open_files_and_locks() -> None:
    files = SimulatedFiles(0)
    file = written(files, b"x")
    files.lock(FOLDER / "lock")
    with pytest.raises(StoreLocked):
        files.lock(FOLDER / "lock")
    files.kill()
    with pytest.raises(OSError, match="restarted"):
        file.pread(1, 0)
    assert files.open(PATH).pread(1, 0) == b"x"
    files.lock(FOLDER / "lock").release()


def test_a_full_disk_takes_a_part_and_is_free_again_after_a_removal() -> None:
    files = SimulatedFiles(0, capacity=2 * BLOCK)
    file = files.open(PATH, create=True)
    with pytest.raises(OSError, match="no space") as raised:
        file.pwrite(b"x" * 3 * BLOCK, 0)
    assert raised.value.errno == errno.ENOSPC
    assert files.size(PATH) == 2 * BLOCK
    assert files.usage(FOLDER).ratio == 1.0
    file.pwrite(b"y", 0)  # existing blocks can be overwritten
    files.remove(PATH)
    files.open(PATH, create=True).allocate(0, 2 * BLOCK)


def test_a_failing_write_leaves_a_random_part() -> None:
    sizes = set()
    for seed in range(10):
        files = SimulatedFiles(seed)
        file = files.open(PATH, create=True)
        files.fault = fail("write", errno.EIO)  # type: ignore[assignment]
        with pytest.raises(OSError, match="commanded"):
            file.pwrite(b"x" * 100, 0)
        sizes.add(files.size(PATH))
    assert len(sizes) > 3


def test_a_rename_carries_files_and_folders() -> None:
    files = SimulatedFiles(0)
    files.make_dir(FOLDER / "a")
    files.open(FOLDER / "a" / "f", create=True).pwrite(b"x", 0)
    files.rename(FOLDER / "a", FOLDER / "b")
    assert files.names(FOLDER) == ["b"]
    files.rename(FOLDER / "b" / "f", FOLDER / "b" / "g")
    assert files.names(FOLDER / "b") == ["g"]
    files.remove_tree(FOLDER / "b")
    assert files.names(FOLDER) == []


def test_a_flipped_bit_stays() -> None:
    files = SimulatedFiles(0)
    written(files, b"\0").sync()
    files.sync_dir(FOLDER)
    files.flip_bit(PATH, 0, 3)
    files.power_cut()
    assert files.open(PATH).pread(1, 0) == b"\x08"
