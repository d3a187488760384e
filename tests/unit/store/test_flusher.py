"""Flushing: group commit, timeouts, and read-only after a failure."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.store import PutStatus
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import Bench, message

ROOT = Path("/store")
QUIET = {"flush_commit_log_least_pages": 4, "flush_commit_log_thorough_interval": 10_000}


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles(0)


@pytest.fixture
def bench(files: SimulatedFiles) -> Bench:
    bench = Bench(ROOT, files, flush_disk_type="SYNC_FLUSH", **QUIET).open()
    bench.run_io()
    return bench


def put_and_wait(bench: Bench, number: int, told: list[tuple[int, bool]]) -> None:
    result = bench.store.put(message(number))
    bench.store.on_flushed(result.offset_end, lambda is_flushed: told.append((number, is_flushed)))


def test_nobody_is_told_before_the_bytes_are_on_the_disk(bench: Bench) -> None:
    told: list[tuple[int, bool]] = []
    put_and_wait(bench, 0, told)
    assert bench.executors["store-flush"].jobs == bench.executors["store-flush"].jobs.__class__()
    bench.store.write_staged()
    assert told == []
    bench.executors["store-flush"].run()
    assert told == [(0, True)]
    assert bench.store.stats().to_flush_bytes == 0
    assert bench.store.stats().flush_times == 1


def test_one_flush_serves_all_who_wait_and_those_who_come_meanwhile_share_the_next(
    bench: Bench,
) -> None:
    executor = bench.executors["store-flush"]
    told: list[tuple[int, bool]] = []
    for number in range(5):
        put_and_wait(bench, number, told)
    bench.store.write_staged()
    for number in range(5, 9):
        put_and_wait(bench, number, told)
        bench.store.write_staged()
    assert len(executor.jobs) == 1
    assert bench.store.stats().flush_waiters == 9
    executor.step()
    assert told == [(number, True) for number in range(5)]
    assert len(executor.jobs) == 1
    executor.step()
    assert told == [(number, True) for number in range(9)]
    assert not executor.jobs


def test_what_is_flushed_already_is_told_at_once(bench: Bench) -> None:
    (result,) = bench.put(message(0))
    bench.store.tick(bench.now_ms + 20_000)
    bench.run_io()
    told: list[bool] = []
    bench.store.on_flushed(result.offset_end, told.append)
    assert told == [True]


def test_a_slow_disk_is_told_after_the_time_limit(bench: Bench) -> None:
    told: list[tuple[int, bool]] = []
    put_and_wait(bench, 0, told)
    bench.store.write_staged()
    bench.store.tick(bench.now_ms)
    bench.store.tick(bench.now_ms + 4_999)
    assert told == []
    bench.store.tick(bench.now_ms + 5_000)
    assert told == [(0, False)]
    bench.executors["store-flush"].run()
    assert told == [(0, False)]


def test_the_time_limit_begins_with_the_first_look(bench: Bench) -> None:
    told: list[tuple[int, bool]] = []
    bench.store.tick(bench.now_ms)
    put_and_wait(bench, 0, told)  # just before the loop was held up for a minute
    bench.store.write_staged()
    bench.store.tick(bench.now_ms + 60_000)
    assert told == []
    bench.executors["store-flush"].run()
    assert told == [(0, True)]


def test_without_waiters_a_timer_flushes_what_is_worth_it(files: SimulatedFiles) -> None:
    bench = Bench(ROOT, files, **QUIET).open()
    executor = bench.executors["store-flush"]
    now = bench.now_ms
    bench.store.tick(now)
    bench.run_io()
    bench.put(message(0))
    bench.store.tick(now + 600)
    assert not executor.jobs  # less than four pages
    bench.put(*(message(number, body=b"x" * 900) for number in range(20)))
    bench.store.tick(now + 700)
    assert not executor.jobs  # less than 500 ms since the last look
    bench.store.tick(now + 1200)
    assert len(executor.jobs) == 1
    executor.run()
    assert bench.store.stats().to_flush_bytes == 0
    bench.put(message(99))
    bench.store.tick(now + 5_000)
    assert not executor.jobs
    bench.store.tick(now + 12_000)
    assert len(executor.jobs) == 1


def fail_sync(files: SimulatedFiles, folder: str) -> None:
    def fault(operation: str, path: Path) -> None:
        if operation == "sync" and folder in path.parts:
            raise OSError(errno.EIO, "input/output error", str(path))

    files.fault = fault


def test_after_a_failed_flush_nothing_is_acknowledged(
    bench: Bench, files: SimulatedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[int, bool]] = []
    put_and_wait(bench, 0, told)
    bench.store.write_staged()
    put_and_wait(bench, 1, told)
    fail_sync(files, "commitlog")
    bench.executors["store-flush"].run()
    assert told == [(0, False), (1, False)]
    assert not bench.store.writable
    assert "flushing the commit log failed" in str(bench.store.read_only_reason)
    assert "read-only until the broker is restarted" in caplog.text
    with pytest.raises(StoreReadOnly):
        bench.store.write_staged()  # the second message was staged before the failure
    files.fault = None
    assert bench.store.put(message(2)).status is PutStatus.SERVICE_NOT_AVAILABLE
    bench.store.on_flushed(1, lambda is_flushed: told.append((3, is_flushed)))
    assert told[2:] == [(3, False)]
    assert bench.store.get("TopicTest", 0, 0, 32).count == 1
    bench.store.close()
    assert files.exists(ROOT / "abort")
    again = Bench(ROOT, files).open()
    assert again.store.writable
    again.store.close()


@pytest.mark.parametrize("folder", ["consumequeue", "index"])
def test_a_failed_sync_of_derived_files_is_as_final(files: SimulatedFiles, folder: str) -> None:
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=0).open()
    bench.put(message(0))
    fail_sync(files, folder)
    bench.tick(10_000)
    bench.tick(10_000)
    assert "flushing consume queues and index failed" in str(bench.store.read_only_reason)


def test_zeros_ahead_that_cannot_be_synced_are_as_final(files: SimulatedFiles) -> None:
    fail_sync(files, "nowhere")
    bench = Bench(ROOT, files, flush_disk_type="SYNC_FLUSH").open()
    fail_sync(files, "commitlog")
    bench.run_io()
    assert "flushing the commit log failed" in str(bench.store.read_only_reason)


def test_the_callbacks_of_a_flush_run_together_while_the_disk_works_on(bench: Bench) -> None:
    executor = bench.executors["store-flush"]
    told: list[tuple[int, bool]] = []
    calls: list[tuple[int, int]] = []

    def run(callbacks: Callable[[], None]) -> None:
        callbacks()
        calls.append((len(told), len(executor.jobs)))

    bench.store.run_flush_callbacks_by(run)
    for number in range(3):
        put_and_wait(bench, number, told)
    bench.store.write_staged()
    for number in range(3, 5):
        put_and_wait(bench, number, told)
    bench.store.write_staged()
    executor.step()
    assert calls == [(3, 1)], "one call for three callbacks, and the next flush has begun"
    executor.step()
    assert calls == [(3, 1), (5, 0)]
    assert told == [(number, True) for number in range(5)]
