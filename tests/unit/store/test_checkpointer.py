"""Checkpoints advance after the data is synced, never before."""

import errno
from pathlib import Path

import pytest

from core_broker.store.checkpoint import load_checkpoint, load_dispatch_checkpoint
from core_broker.store.checkpointer import SLOT_SHARES
from core_broker.store.consume_queue import MAKING_COST
from core_broker.store.index_items import SLOTS_PER_BLOCK
from core_broker.store.index_layout import HEADER, SLOT
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import Bench, message, query

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
    bench.executors["store-flush"].run()
    bench.put_many(3, first=5)
    bench.executors["store-upkeep"].run()
    assert known(files) == end
    checkpoint = load_checkpoint(files, ROOT / "checkpoint")
    assert checkpoint.physic_msg_timestamp == stored_at
    assert checkpoint.logics_msg_timestamp == stored_at
    assert checkpoint.index_msg_timestamp == 0  # slots wait for their share
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


def slots_on_disk(files: SimulatedFiles, slot_count: int) -> int:
    """The number of used slots in the file of the only index file."""
    (name,) = files.names(ROOT / "index")
    data = files.open(ROOT / "index" / name).pread(slot_count * SLOT.size, HEADER.size)
    return sum(map(bool, (number for (number,) in SLOT.iter_unpack(data))))


def scattered(number: int) -> str:
    """A key; the hashes of such keys are far from each other."""
    return f"{number:03d}-is-a-key"


def test_the_slots_of_the_index_are_written_in_shares_and_rebuilt_after_a_crash(
    files: SimulatedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.store.checkpointer.LOG_BYTES_MAX", 1)
    slots = 4 * SLOT_SHARES * SLOTS_PER_BLOCK
    sizes = {"max_hash_slot_num": slots, "max_index_num": 2000}
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=60_000, **sizes).open()

    def put(first: int) -> None:
        for number in range(first, first + 100):
            bench.put(message(number, properties={"KEYS": scattered(number)}))

    put(0)
    bench.tick(1_000)
    bench.tick(1_000)
    assert known(files) == bench.store.max_offset_physical
    begun = slots_on_disk(files, slots)
    assert 0 < begun < 100
    files.power_cut()
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=60_000, **sizes).open()
    rebuilt = slots_on_disk(files, slots)
    assert rebuilt > begun
    for number in range(100):
        found = query(bench.store, scattered(number)).records
        assert len(found) == 1
    put(100)
    bench.tick(1_000)
    for _ in range(SLOT_SHARES):  # without a new message
        bench.tick(60_000 // SLOT_SHARES)
    everything = slots_on_disk(files, slots)
    assert everything > rebuilt
    bench.store.close()
    assert slots_on_disk(files, slots) == everything


def test_the_checkpoint_of_the_index_waits_for_all_slots(files: SimulatedFiles) -> None:
    """After a kill, Java's broker trusts an index file that ends by the checkpoint."""
    slots = 4 * SLOT_SHARES * SLOTS_PER_BLOCK
    sizes = {"max_hash_slot_num": slots, "max_index_num": 2000}
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=60_000, **sizes).open()
    for number in range(100):
        bench.put(message(number, properties={"KEYS": scattered(number)}))
    stored_at = bench.now_ms
    bench.tick(60_000)
    checkpoint = load_checkpoint(files, ROOT / "checkpoint")
    assert (checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp) == (stored_at, 0)
    for _ in range(2 * SLOT_SHARES):  # without a new message
        bench.tick(60_000 // SLOT_SHARES)
    checkpoint = load_checkpoint(files, ROOT / "checkpoint")
    assert checkpoint.index_msg_timestamp == stored_at
    bench.store.close()


def test_a_share_of_the_slots_that_fails_is_written_again(files: SimulatedFiles) -> None:
    sizes = {"max_hash_slot_num": 1000, "max_index_num": 500}
    bench = Bench(ROOT, files, flush_consume_queue_thorough_interval=60_000, **sizes).open()
    bench.put_many(5)

    def fault(call: str, path: Path) -> None:
        if call == "write" and path.parent.name == "index":
            raise OSError(errno.EIO, "broken")

    bench.store.tick(bench.now_ms)
    files.fault = fault
    bench.run_io()
    files.fault = None
    assert slots_on_disk(files, 1000) == 0
    bench.tick(60_000 // SLOT_SHARES)
    assert slots_on_disk(files, 1000) > 0
    bench.store.close()


def test_it_stays_when_the_log_cannot_be_flushed_in_time(files: SimulatedFiles) -> None:
    bench = Bench(ROOT, files).open()
    bench.put_many(5)
    bench.store.tick(bench.now_ms)
    bench.store.tick(bench.now_ms + 6_000)
    bench.executors["store-upkeep"].run()
    assert known(files) is None
    bench.run_io()
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


@pytest.fixture
def sliced(files: SimulatedFiles, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A store with 20 queues and slices of three queues."""
    monkeypatch.setattr("core_broker.store.checkpointer.WRITES_PER_SLICE", 3 * MAKING_COST)
    monkeypatch.setattr("core_broker.store.message_store.WRITES_PER_TICK", 0)
    bench = Bench(ROOT, files).open()
    bench.put(*(message(number, queue_id=number) for number in range(20)))
    return bench


def test_many_queues_are_written_in_slices(files: SimulatedFiles, sliced: Bench) -> None:
    end, stored_at = sliced.store.max_offset_physical, sliced.now_ms
    for number in range(6):
        sliced.tick(100)
        assert known(files) is None
        assert len(sliced.store._queues.dirty_paths) == 3 + 3 * number
        sliced.put(message(number, queue_id=number))
    sliced.tick(100)
    found = load_dispatch_checkpoint(files, ROOT / "dispatchCheckpoint.json")
    assert found is not None
    assert found.offset_physical == end
    assert set(found.queues["TopicTest"]) == set(range(20))
    checkpoint = load_checkpoint(files, ROOT / "checkpoint")
    assert checkpoint.physic_msg_timestamp == stored_at
    files.power_cut()
    again = Bench(ROOT, files).open()
    assert min(again.store.queue_range("TopicTest", each)[1] for each in range(20)) == 1
    again.store.close()


def test_a_topic_deleted_meanwhile_does_not_come_back(files: SimulatedFiles, sliced: Bench) -> None:
    sliced.tick(100)
    sliced.store.delete_topic("TopicTest")
    sliced.put(message(0, topic="Other"))
    for _ in range(10):
        sliced.tick(1000)
    found = load_dispatch_checkpoint(files, ROOT / "dispatchCheckpoint.json")
    assert found is not None
    assert found.queues == {"Other": {0: (0, 1)}}
    sliced.store.close()


def test_a_slice_that_fails_is_tried_again(files: SimulatedFiles, sliced: Bench) -> None:
    def fault(call: str, path: Path) -> None:
        if call == "write" and "consumequeue" in str(path):
            raise OSError(errno.ENOSPC, "full")

    files.fault = fault
    sliced.tick(100)
    assert not sliced.store.writable
    files.fault = None
    for _ in range(10):
        sliced.tick(1000)
    assert sliced.store.writable
    assert known(files) == sliced.store.max_offset_physical
    sliced.store.close()
