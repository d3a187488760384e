"""A read of many sends takes two iterations: the first answers leave after the first."""

import errno
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.send_frames import common_case_frame
from tests.support.two_paths import OnePath, compare

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4),)
COUNT = 64
BODY = b"x" * 1024


def sends(first: int = 0, **changes: str) -> bytes:
    return b"".join(
        common_case_frame(number, BODY, **changes) for number in range(first, first + COUNT)
    )


def opaques(told: bytes) -> list[int]:
    return [each.opaque for each in FrameSplitter().feed(told) if each.code == 0]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_as_the_slow_path_stores_and_answers(tmp_path: Path, flush: str) -> None:
    turns = [[(0, sends())], [(0, sends() + sends()), (1, sends()[:-7])]]
    taken = await compare(
        tmp_path, turns, TOPICS, flush_disk_type=flush, mapped_file_size_commit_log=4 << 20
    )
    assert taken == 4 * COUNT - 1


async def test_the_first_half_is_answered_before_the_second_iteration(tmp_path: Path) -> None:
    path = OnePath(tmp_path, TOPICS, mapped_file_size_commit_log=4 << 20)
    path.peer()
    path.hear(0, sends())
    first = opaques(path.told[0])
    assert COUNT // 4 <= len(first) <= 3 * COUNT // 4
    assert sum(path.broker.ctx.store.queue_range("T", each)[1] for each in range(4)) == len(first)
    assert opaques((await path.settle())[0]) == list(range(COUNT))
    await path.close()


async def test_few_or_short_sends_take_one_iteration(tmp_path: Path) -> None:
    path = OnePath(tmp_path, TOPICS, mapped_file_size_commit_log=4 << 20)
    path.peer()
    path.hear(0, b"".join(common_case_frame(number, BODY) for number in range(16)))
    path.hear(0, b"".join(common_case_frame(number) for number in range(COUNT)))
    assert path.told == [b""]
    assert len(opaques((await path.settle())[0])) == 16 + COUNT
    await path.close()


@pytest.mark.parametrize("failing_write", [1, 2])
async def test_a_disk_that_fails_in_either_half(failing_write: int) -> None:
    """Acknowledged messages are found again; other sends get no answer."""
    files, writes = SimulatedFiles(), 0

    def fail(operation: str, path: Path) -> None:
        nonlocal writes
        if operation == "write" and "commitlog" in path.parts:
            writes += 1
            if writes >= failing_write:
                raise OSError(errno.EIO, "the disk fails", str(path))

    path = OnePath(Path("/broker"), TOPICS, files=files, mapped_file_size_commit_log=4 << 20)
    path.peer()
    await path.settle()
    files.fault = fail
    path.hear(0, sends())
    told = opaques((await path.settle())[0])
    assert len(told) == 0 if failing_write == 1 else COUNT // 4 <= len(told) < COUNT
    assert not path.wires[0].is_open
    assert not path.broker.ctx.store.writable
    files.fault = None
    stored = [len(await path.broker.messages("T", each)) for each in range(4)]
    assert sum(stored) == len(told)
    path.broker.close()
    again = OnePath(Path("/broker"), TOPICS, files=files, mapped_file_size_commit_log=4 << 20)
    assert sum([len(await again.broker.messages("T", each)) for each in range(4)]) >= len(told)
    again.broker.close()
