"""A disk that fails while a fast path keeps sends: no success is sent, other peers go on.

The broker must behave alike on all paths.
"""

import errno
from pathlib import Path

import pytest

from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.send_frames import common_case_frame
from tests.support.two_paths import PATHS, OnePath

TOPICS = (("T", 4), ("U", 2))
SLOW_PATH = {"j": "1"}

each_path = pytest.mark.parametrize("kind", PATHS)
both_flushes = pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])


def sends(count: int, first: int = 0, **changes: str) -> bytes:
    return b"".join(common_case_frame(number, **changes) for number in range(first, first + count))


def codes(told: bytes) -> list[int]:
    return [each.code for each in FrameSplitter().feed(told)]


class Disk:
    """Simulated files; operations with the name in `failing` fail."""

    def __init__(self) -> None:
        self.files = SimulatedFiles()
        self.failing = ""
        self.error = errno.EIO
        self.files.fault = self._fail

    def _fail(self, operation: str, path: Path) -> None:
        if operation == self.failing and "commitlog" in path.parts:
            raise OSError(self.error, "the disk fails", str(path))


def start(disk: Disk, kind: str, flush: str) -> OnePath:
    path = OnePath(
        Path("/broker"),
        TOPICS,
        files=disk.files,
        path=kind,
        flush_disk_type=flush,
        wait_time_mills_in_send_queue=60_000,
    )
    for _ in range(3):
        path.peer()
    return path


@each_path
@both_flushes
async def test_a_write_that_fails(kind: str, flush: str) -> None:
    """No success is sent; a peer without a request in this iteration keeps its connection."""
    disk = Disk()
    path = start(disk, kind, flush)
    path.hear(0, sends(3))
    before = await path.settle()
    assert codes(before[0]) == [0, 0, 0]
    disk.failing = "write"
    path.hear(0, sends(3, 10) + sends(1, 20, **SLOW_PATH))
    path.hear(1, sends(2, 30))
    told = await path.settle()
    assert 0 not in codes(told[0][len(before[0]) :]) + codes(told[1])
    assert path.wires[2].is_open
    assert not path.broker.ctx.store.writable
    disk.failing = ""
    path.hear(2, sends(2, 40))
    told = await path.settle()
    assert codes(told[2]) == [ResponseCode.SERVICE_NOT_AVAILABLE] * 2
    assert path.broker.ctx.store.queue_range("T", 0) == (0, 1)
    assert len(await path.broker.messages("T", 0)) == 1
    path.broker.close()
    again = start(disk, kind, flush)
    again.hear(0, sends(4))
    assert codes((await again.settle())[0]) == [0] * 4
    # Whole records of the torn write are stored, although no peer got an answer.
    offsets = [each.queue_offset for each in await again.broker.messages("T", 0)]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 2
    again.broker.close()


@each_path
@both_flushes
async def test_a_full_disk_and_free_space_again(kind: str, flush: str) -> None:
    """A full disk fails a whole iteration of sends; with free space offsets continue gapless."""
    disk = Disk()
    disk.error = errno.ENOSPC
    path = start(disk, kind, flush)
    path.hear(0, sends(4))
    await path.settle()
    # Existing segments take a number of messages; then the log needs a new segment.
    disk.failing = "allocate"
    acknowledged = 1
    for turn in range(60):
        peer = path.peer()
        path.hear(peer, sends(3, 4 * turn, e="0"))
        said = codes((await path.settle())[peer])
        assert said in ([], [0, 0, 0]) or 0 not in said or flush == "ASYNC_FLUSH"
        acknowledged += said.count(0)
    disk.failing = ""
    path.broker.ctx.store.tick(path.broker.now_ms)
    peer = path.peer()
    await path.settle()
    path.broker.ctx.store.tick(path.broker.now_ms)
    path.hear(peer, sends(3, e="0"))
    assert codes((await path.settle())[peer]) == [0, 0, 0]
    assert path.broker.ctx.store.queue_range("T", 0) == (0, acknowledged + 3)
    path.broker.close()


@each_path
async def test_no_answer_before_the_flush(kind: str) -> None:
    """With SYNC_FLUSH no answer is sent while the disk is busy, and every answer afterwards."""
    path = start(Disk(), kind, "SYNC_FLUSH")
    held = path.broker.executors.copy()
    path.broker.executors.clear()
    path.hear(0, sends(3))
    path.hear(1, sends(2) + sends(1, 5, **SLOW_PATH))
    assert await path.settle() == [b"", b"", b""]
    path.hear(0, sends(3, 10))
    assert await path.settle() == [b"", b"", b""]
    assert [wire.connection.held for wire in path.wires] == [6, 3, 0]
    for executor in held:
        executor.run()
    # At once: without a further iteration of the event loop.
    assert [len(codes(each)) for each in path.told] == [6, 3, 0]
    path.broker.executors += held
    await path.settle()
    assert [len(codes(each)) for each in path.told] == [6, 3, 0]
    assert [wire.connection.held for wire in path.wires] == [0, 0, 0]
    path.broker.close()


@each_path
async def test_a_flush_that_fails(kind: str) -> None:
    """No success is sent; the store refuses messages until a restart."""
    disk = Disk()
    path = start(disk, kind, "SYNC_FLUSH")
    disk.failing = "sync"
    path.hear(0, sends(3) + sends(1, 5, **SLOW_PATH))
    path.hear(1, sends(2, 10))
    told = await path.settle()
    refused = ResponseCode.SERVICE_NOT_AVAILABLE
    assert [codes(each) for each in told] == [[refused] * 4, [refused] * 2, []]
    disk.failing = ""
    path.hear(2, sends(1, 20))
    assert codes((await path.settle())[2]) == [refused]
    path.broker.close()


@each_path
async def test_a_flush_that_is_late(kind: str) -> None:
    path = start(Disk(), kind, "SYNC_FLUSH")
    store = path.broker.ctx.store
    executors = path.broker.executors.copy()
    path.broker.executors.clear()
    path.hear(0, sends(2))
    await path.settle()
    store.tick(path.broker.now_ms)
    store.tick(path.broker.now_ms + path.broker.ctx.config.sync_flush_timeout)
    assert codes((await path.settle())[0]) == [ResponseCode.FLUSH_DISK_TIMEOUT] * 2
    path.broker.executors += executors
    assert len(codes((await path.settle())[0])) == 2
    path.broker.close()


@each_path
@both_flushes
async def test_a_broker_that_stops_in_the_middle_of_an_iteration(kind: str, flush: str) -> None:
    """Acknowledged messages are stored; the next start finds only whole messages."""
    disk = Disk()
    path = start(disk, kind, flush)
    path.hear(0, sends(3, e="0") + sends(1, 5, e="0", **SLOW_PATH))
    path.broker.ctx.is_accepting = False
    path.hear(1, sends(2, 10, e="0"))
    path.broker.close()
    told = await path.settle()
    assert codes(told[1]).count(0) == 0
    again = start(disk, kind, flush)
    stored = await again.broker.messages("T", 0)
    assert [each.queue_offset for each in stored] == list(range(len(stored)))
    assert len(stored) >= codes(told[0]).count(0)
    assert len(stored) == 4
    again.broker.close()
