"""Checkpoints move behind the data, never before it."""

from pathlib import Path

import pytest

from core_broker.store.checkpoint import load_checkpoint, load_dispatch_checkpoint
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import Bench, message

ROOT = Path("/store")


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles(0)


def known(files: SimulatedFiles) -> int | None:
    found = load_dispatch_checkpoint(files, ROOT / "dispatchCheckpoint.json")
    return None if found is None else found.offset_physical


def test_it_moves_to_where_log_queues_and_index_were_when_it_began(files: SimulatedFiles) -> None:
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=60_000).open()
    store = bench.store
    bench.put_many(5)
    end, stored_at = store.max_offset_physical, bench.now_ms
    store.tick(bench.now_ms)
    assert known(files) is None  # the log has to be flushed first
    bench.lanes["store-flush"].run()
    bench.put_many(3, first=5)
    bench.lanes["store-upkeep"].run()
    assert known(files) == end
    checkpoint = load_checkpoint(files, ROOT / "checkpoint")
    assert checkpoint.physic_msg_timestamp == stored_at
    assert checkpoint.logics_msg_timestamp == stored_at
    assert checkpoint.index_msg_timestamp == stored_at
    found = load_dispatch_checkpoint(files, ROOT / "dispatchCheckpoint.json")
    assert found is not None
    assert found.queues == {"TopicTest": {0: (0, 5)}}
    bench.tick(30_000)
    assert known(files) == end
    bench.tick(30_000)
    assert known(files) == store.max_offset_physical
    bench.store.close()


def test_it_moves_early_when_much_was_written(
    files: SimulatedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.store.checkpointer.LOG_BYTES_MAX", 2000)
    bench = Bench(ROOT, files).open()
    bench.put_many(5)
    bench.tick()
    first = known(files)
    bench.put_many(5, first=5)
    bench.tick()
    assert known(files) == first
    bench.put_many(9, first=10)
    bench.tick()
    assert known(files) == bench.store.max_offset_physical
    bench.store.close()


def test_it_stays_when_the_log_cannot_be_flushed_in_time(files: SimulatedFiles) -> None:
    bench = Bench(ROOT, files).open()
    bench.put_many(5)
    bench.store.tick(bench.now_ms)
    bench.store.tick(bench.now_ms + 6_000)
    bench.lanes["store-upkeep"].run()
    assert known(files) is None
    bench.run_lanes()
    bench.tick(70_000)
    bench.tick(1_000)
    assert known(files) == bench.store.max_offset_physical
    bench.store.close()


def test_busy_queues_are_synced_between_checkpoints(files: SimulatedFiles) -> None:
    bench = Bench(ROOT, files, flush_consume_queue_least_pages=0).open()
    bench.put(message(0))
    bench.tick(10)
    bench.put(message(1))
    bench.tick()
    assert bench.store._queues.dirty_paths == {}
    bench.store.close()
