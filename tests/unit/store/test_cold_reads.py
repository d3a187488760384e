"""Data outside the page cache is read in I/O threads, never on the event loop."""

import asyncio
import errno
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from core_broker.errors import StoreBusy
from core_broker.store import ColdRead, GetStatus, MessageStore, ask_all
from core_broker.store.cold_reads import AHEAD_BYTES, WAITING_MAX, WARM_BYTES, ColdReads
from core_broker.store.files import DiskFiles
from tests.support.cold_files import ColdFiles
from tests.support.stores import Bench, ManualExecutor, message, query, store_config, warmed

TOPIC = "TopicTest"


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def bench(tmp_path: Path, files: ColdFiles) -> Iterator[Bench]:
    """A store with several segments and queue files, all evicted from memory."""
    bench = Bench(tmp_path, files).open()
    bench.put_many(200, body=b"x" * 500)
    bench.tick(60_000)
    files.evict()
    yield bench
    files.runs.set()
    bench.store.close()


def ask_get(store: MessageStore, offset: int = 20) -> tuple[GetStatus, list[bytes], int]:
    result = store.get(TOPIC, 0, offset, 32)
    return result.status, [bytes(each) for each in result.records], result.next_offset


QUESTIONS: dict[str, Callable[[MessageStore], object]] = {
    "get": ask_get,
    "units": lambda store: store.queue_units(TOPIC, 0, 3, 30),
    "record": lambda store: store.read_at(store.queue_units(TOPIC, 0, 3, 1)[0].offset_physical),
    "offset by time": lambda store: store.offset_by_time(TOPIC, 0, 1),
    "store time": lambda store: store.store_time_of(TOPIC, 0, 50),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_cold_read_is_told_and_answered_when_it_was_warmed(
    bench: Bench, files: ColdFiles, name: str
) -> None:
    ask = partial(QUESTIONS[name], bench.store)
    with pytest.raises(ColdRead):
        ask()
    first = warmed(bench.store, ask)
    reads = files.reads
    assert reads > 0
    assert ask() == first
    assert files.reads == reads
    bench.store.close()  # the query waits for the disk
    again = Bench(Path(bench.store.config.store_path_root_dir)).open()
    assert warmed(again.store, partial(QUESTIONS[name], again.store)) == first
    again.store.close()


def test_one_trip_brings_all_that_a_read_lacks(bench: Bench, files: ColdFiles) -> None:
    store = bench.store
    for number in range(400):  # messages of one queue are far apart
        bench.put(message(number, queue_id=1 + number % 40, body=b"x" * 500))
    files.evict()
    with pytest.raises(ColdRead) as cold:
        store.get(TOPIC, 5, 0, 32)
    assert len(cold.value.spans) == 10
    store.cold_reads.warm(cold.value, lambda error: None)
    assert store.get(TOPIC, 5, 0, 32).count == 10


def test_what_lies_behind_is_read_ahead(bench: Bench, files: ColdFiles) -> None:
    """Readahead once per cold read, behind the last range; none for lookups."""
    with pytest.raises(ColdRead) as cold:
        bench.store.read_at(0)
    bench.store.cold_reads.warm(cold.value, lambda error: None)
    assert files.ahead == []
    path = Path(bench.store.config.store_path_root_dir) / "commitlog" / f"{0:020}"
    ColdRead(files, path, 4096, 0).add(ColdRead(files, path, 5000, 8192)).warm()
    assert files.ahead == [(path, AHEAD_BYTES, 8192 + WARM_BYTES)]


def test_a_real_file_can_be_read_ahead(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345678")
    file = DiskFiles().open(tmp_path / "file")
    file.will_need(AHEAD_BYTES, 0)
    file.will_need(AHEAD_BYTES, 1 << 40)
    assert file.pread(8, 0) == b"12345678"
    file.close()


def test_questions_asked_together_share_a_trip(bench: Bench) -> None:
    offsets = range(0, 200, 40)
    asks = [partial(bench.store.store_time_of, TOPIC, 0, offset) for offset in offsets]
    trips = 0
    while True:
        try:
            times = ask_all(asks)
            break
        except ColdRead as cold:
            trips += 1
            bench.store.cold_reads.warm(cold, lambda error: None)
    assert trips == 2  # units, then records
    assert times == [bench.now_ms - 60_000] * len(offsets)


def test_a_query_by_key_reads_in_threads(bench: Bench, files: ColdFiles) -> None:
    found = query(bench.store, "order-7")
    assert [bytes(each) for each in found.records] == [
        warmed(
            bench.store,
            lambda: bench.store.read_at(bench.store.queue_units(TOPIC, 0, 7, 1)[0].offset_physical),
        )
    ]
    assert files.reads > 0


def test_queues_follow_the_log_when_their_units_are_cold(bench: Bench, files: ColdFiles) -> None:
    bench.now_ms = time.time_ns() // 1_000_000 + 10**9
    bench.store.delete_expired_files()
    for _ in range(30):
        bench.tick(11_000)
    store = bench.store
    assert store.min_offset_physical > 0
    assert warmed(store, partial(store.read_at, store.min_offset_physical)) is not None
    low, _ = store.queue_range(TOPIC, 0)
    units = warmed(store, partial(store.queue_units, TOPIC, 0, low, 1))
    assert units[0].offset_physical == store.min_offset_physical


async def test_a_stalled_disk_keeps_nobody_waiting_but_who_needs_it(
    tmp_path: Path, files: ColdFiles
) -> None:
    store = MessageStore(store_config(tmp_path), files=files)
    store.load()
    store.start(asyncio.get_running_loop())
    for number in range(100):
        store.put(message(number, body=b"x" * 300))
    store.write_staged()
    store.queue_units(TOPIC, 0, 0, 1)
    files.runs.clear()
    files.evict()
    get = asyncio.ensure_future(store.cold_reads.when_warm(partial(store.get, TOPIC, 0, 0, 32)))
    by_key = asyncio.ensure_future(store.query(TOPIC, "order-3", 8, 0, 1 << 62))
    try:
        for number in range(50):  # meanwhile life goes on
            store.put(message(number, queue_id=1))
            store.write_staged()
            assert store.get(TOPIC, 1, number, 1).count == 1
            await asyncio.sleep(0)
        assert not get.done()
        assert not by_key.done()
        assert store.cold_reads.waiting == 2
    finally:
        files.runs.set()
    assert (await get).count == 32
    assert len((await by_key).records) == 1
    assert store.stats().waiting_reads == 0
    store.close()


async def test_a_read_that_fails_is_told(bench: Bench, files: ColdFiles) -> None:
    files.error = OSError(errno.EIO, "the disk is broken")
    with pytest.raises(OSError, match="the disk is broken"):
        await bench.store.cold_reads.when_warm(partial(ask_get, bench.store))
    files.error = None
    status, _, _ = await bench.store.cold_reads.when_warm(partial(ask_get, bench.store))
    assert status is GetStatus.FOUND


def test_no_more_than_a_number_of_reads_wait(tmp_path: Path) -> None:
    executor = ManualExecutor("slow")
    executor.hold()
    reads = ColdReads([executor], executor, lambda cold: None, waiting_max=2)
    heard: list[Exception | None] = []
    for _ in range(3):
        reads.run(lambda: None, heard.append)
    assert [type(each) for each in heard] == [StoreBusy]
    executor.run()
    assert heard[1:] == [None, None]
    assert reads.waiting == 0
    assert WAITING_MAX >= 100


def test_a_file_that_is_gone_is_the_readers_affair(tmp_path: Path) -> None:
    ColdRead(DiskFiles(), tmp_path / "gone", 10, 0).warm()


def test_a_file_system_that_cannot_tell_is_read_as_always(
    bench: Bench,
    files: ColdFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(files, "is_warm", lambda path, pages: False)
    assert warmed(bench.store, partial(ask_get, bench.store))[0] is GetStatus.FOUND
    assert "does not support RWF_NOWAIT reads" in caplog.text


class Answers:
    """Results of os.preadv, one per call: an error, or a number of bytes."""

    def __init__(self, *answers: OSError | int) -> None:
        self._answers = list(answers)

    def __call__(self, fd: int, buffers: tuple[bytearray], offset: int, flags: int) -> int:
        answer = self._answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        buffers[0][:answer] = os.pread(fd, answer, offset)
        return answer


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((BlockingIOError(errno.EAGAIN, ""),), None),
        ((3, BlockingIOError(errno.EAGAIN, "")), None),
        ((3, 5), b"12345678"),
        ((3, 0), b"123"),  # the end of the file
        ((OSError(errno.EOPNOTSUPP, ""),), b"12345678"),
    ],
)
def test_asking_the_memory_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[OSError | int, ...],
    expected: bytes | None,
) -> None:
    (tmp_path / "file").write_bytes(b"12345678")
    file = DiskFiles().open(tmp_path / "file")
    monkeypatch.setattr(os, "preadv", Answers(*answers))
    assert file.pread_now(8, 0) == expected
    file.close()
