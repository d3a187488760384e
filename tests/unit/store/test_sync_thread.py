"""An I/O thread syncs files without the GIL where possible, and as an ordinary job elsewhere."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core_broker.store import sync_thread
from core_broker.store.files import DiskFile, DiskFiles, SyncFailed
from core_broker.store.io_threads import IoThread

WITHIN_S = 60
#: Real syncs, unlike in the other store tests.
fdatasync = os.fdatasync


@pytest.fixture
async def executor() -> AsyncIterator[IoThread]:
    executor = IoThread("test")
    executor.start(asyncio.get_running_loop())
    yield executor
    executor.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DiskFile]:
    file = DiskFiles().open(tmp_path / "file", create=True)
    file.pwrite(b"message", 0)
    yield file
    file.close()


def sync_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "test-sync"]


async def synced(executor: IoThread, file: DiskFile) -> Exception | None:
    told: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    executor.sync(file, told.set_result)
    return await asyncio.wait_for(told, WITHIN_S)


@pytest.fixture(params=["compiled", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are synced both ways."""
    if request.param == "plain":
        monkeypatch.setattr(sync_thread, "Syncer", None)


@pytest.mark.usefixtures("way")
async def test_a_file_is_synced_again_and_again(executor: IoThread, file: DiskFile) -> None:
    for _ in range(100):
        assert await synced(executor, file) is None
    assert bool(sync_threads()) is sync_thread.can_sync(file)


@pytest.mark.usefixtures("way")
async def test_a_sync_that_fails_says_so(
    executor: IoThread, file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", fdatasync)
    reader, writer = os.pipe()
    good, file._fd = file._fd, writer  # a pipe cannot be synced
    error = await synced(executor, file)
    file._fd = good
    assert isinstance(error, SyncFailed)
    assert error.errno == errno.EINVAL
    assert error.strerror
    assert await synced(executor, file) is None
    os.close(reader)
    os.close(writer)


async def test_close_waits_for_what_is_under_way_and_for_what_comes_of_it(file: DiskFile) -> None:
    executor = IoThread("test")
    executor.start(asyncio.get_running_loop())
    seen: list[Exception | None] = []

    def again(error: Exception | None) -> None:
        seen.append(error)
        if len(seen) < 3:
            executor.sync(file, again)

    executor.sync(file, again)
    executor.close()
    assert seen == [None, None, None]
    assert sync_threads() == []
    executor.sync(file, again)
    assert len(seen) == 4


async def test_close_waits_however_many_descriptors_there_are(file: DiskFile) -> None:
    executor = IoThread("test")
    executor.start(asyncio.get_running_loop())
    seen: list[Exception | None] = []
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    executor.sync(file, seen.append)
    executor.close()
    for each in many:
        os.close(each)
    assert seen == [None]


async def test_without_descriptors_files_are_synced_all_the_same(
    executor: IoThread, file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "eventfd", fail, raising=False)
    assert await synced(executor, file) is None
    assert sync_threads() == []
