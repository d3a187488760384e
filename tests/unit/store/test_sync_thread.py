"""A lane syncs files without the interpreter where it can, and as any other job elsewhere."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core_broker.store import sync_thread
from core_broker.store.files import DiskFile, DiskFiles, SyncFailed
from core_broker.store.lanes import ThreadLane

WITHIN_S = 20
#: Not the one of the other tests here, which do not wait for a disk.
fdatasync = os.fdatasync


@pytest.fixture
async def lane() -> AsyncIterator[ThreadLane]:
    lane = ThreadLane("test")
    lane.start(asyncio.get_running_loop())
    yield lane
    lane.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DiskFile]:
    file = DiskFiles().open(tmp_path / "file", create=True)
    file.pwrite(b"message", 0)
    yield file
    file.close()


def sync_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "test-sync"]


async def synced(lane: ThreadLane, file: DiskFile) -> Exception | None:
    told: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    lane.sync(file, told.set_result)
    return await asyncio.wait_for(told, WITHIN_S)


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_a_file_is_synced_again_and_again(
    lane: ThreadLane, file: DiskFile, monkeypatch: pytest.MonkeyPatch, *, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(sync_thread, "Syncer", None)
    for _ in range(100):
        assert await synced(lane, file) is None
    assert bool(sync_threads()) is sync_thread.can_sync(file)


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_a_sync_that_fails_says_so(
    lane: ThreadLane, file: DiskFile, monkeypatch: pytest.MonkeyPatch, *, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(sync_thread, "Syncer", None)
    monkeypatch.setattr(os, "fdatasync", fdatasync)
    reader, writer = os.pipe()
    good, file._fd = file._fd, writer  # a pipe cannot be synced
    error = await synced(lane, file)
    file._fd = good
    assert isinstance(error, SyncFailed)
    assert error.errno == errno.EINVAL
    assert error.strerror
    assert await synced(lane, file) is None
    os.close(reader)
    os.close(writer)


async def test_close_waits_for_what_is_under_way_and_for_what_comes_of_it(file: DiskFile) -> None:
    lane = ThreadLane("test")
    lane.start(asyncio.get_running_loop())
    seen: list[Exception | None] = []

    def again(error: Exception | None) -> None:
        seen.append(error)
        if len(seen) < 3:
            lane.sync(file, again)

    lane.sync(file, again)
    lane.close()
    assert seen == [None, None, None]
    assert sync_threads() == []
    lane.sync(file, again)
    assert len(seen) == 4
