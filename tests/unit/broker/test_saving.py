"""broker/saving.py: sliced encodings, one write at a time, and the end of a broker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from core_broker.broker.saving import TableSaver
from core_broker.processors.context import ConfigTable
from core_broker.store.io_threads import IoThread
from tests.support.eventually import eventually

OFFSETS = ConfigTable.OFFSETS


class Table:
    """A table whose encoding takes a number of slices."""

    def __init__(self, slices: int) -> None:
        self.slices = slices
        self.version = 1
        #: Iterations of the event loop in which a slice was encoded.
        self.encoded_in: list[int] = []
        self._iteration = 0

    async def count_iterations(self) -> None:
        while True:
            self._iteration += 1
            await asyncio.sleep(0)

    def encode(self) -> Iterator[bytes]:
        for _ in range(self.slices):
            self.encoded_in.append(self._iteration)
            yield b"%d;" % self.version


def saver_of(folder: Path, table: Table) -> tuple[TableSaver, IoThread]:
    executor = IoThread("test-saves")
    executor.start(asyncio.get_running_loop())
    return TableSaver(folder, {OFFSETS: table.encode}, executor), executor


async def test_an_iteration_of_the_event_loop_encodes_one_slice(tmp_path: Path) -> None:
    table = Table(slices=20)
    saver, executor = saver_of(tmp_path, table)
    counting = asyncio.create_task(table.count_iterations())
    done: list[Exception | None] = []
    saver.save(OFFSETS, done.append)
    await eventually(lambda: done == [None])
    counting.cancel()
    assert saver.path(OFFSETS).read_bytes() == b"1;" * 20
    assert len(set(table.encoded_in)) == 20, table.encoded_in
    executor.close()


async def test_changes_during_an_encoding_are_saved_after_it(tmp_path: Path) -> None:
    table = Table(slices=3)
    saver, executor = saver_of(tmp_path, table)
    done: list[int] = []
    saver.save(OFFSETS, lambda _: done.append(1))
    await asyncio.sleep(0)
    table.version = 2
    saver.save(OFFSETS, lambda _: done.append(2))
    await eventually(lambda: done == [1, 2])
    assert saver.path(OFFSETS).read_bytes() == b"2;2;2;"
    executor.close()


async def test_a_close_during_an_encoding_writes_the_newest_table(tmp_path: Path) -> None:
    table = Table(slices=3)
    saver, _executor = saver_of(tmp_path, table)
    done: list[int] = []
    saver.save(OFFSETS, lambda _: done.append(1))
    await asyncio.sleep(0)
    table.version = 2
    saver.close()
    assert saver.path(OFFSETS).read_bytes() == b"2;2;2;"
    assert done == [1]
    await asyncio.sleep(0)  # a slice was still scheduled
    assert saver.path(OFFSETS).read_bytes() == b"2;2;2;"
