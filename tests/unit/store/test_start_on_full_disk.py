"""A start on a full disk: the store serves reads and deletions, and accepts messages once space is
free, without a restart.
"""

import errno
import logging
from pathlib import Path

import pytest

from core_broker.errors import StoreFull
from core_broker.store import PutStatus
from core_broker.store.simulated_files import BLOCK, UNLIMITED, SimulatedFiles
from tests.support.stores import NOW_MS, Bench, message, query, read_queue

ROOT = Path("/store")
COUNT = 70
TOPICS = ("TopicTest", "TopicMore")


class NoSpace:
    """A fault: a file system that writes every block to a new place has no block left."""

    def __init__(self, files: SimulatedFiles) -> None:
        self._files = files

    def __call__(self, operation: str, path: Path) -> None:
        is_creation = operation == "open" and not self._files.exists(path)
        if is_creation or operation in ("write", "allocate", "truncate", "make_dir"):
            raise OSError(errno.ENOSPC, "no space left on device", str(path))


def fill_disk(files: SimulatedFiles, how: str) -> None:
    if how == "no block":
        files.capacity = files.used // BLOCK * BLOCK
    else:
        files.fault = NoSpace(files)


def free_disk(files: SimulatedFiles) -> None:
    files.capacity = UNLIMITED
    files.fault = None


def end(files: SimulatedFiles, bench: Bench, how: str) -> None:
    if how == "killed":
        files.kill()
    elif how == "without power":
        files.power_cut()
    else:
        bench.store.close()


def filled(how: str) -> SimulatedFiles:
    """A disk with two topics, of which the newest messages are behind the last checkpoint."""
    files = SimulatedFiles(1, clock_ms=lambda: NOW_MS)
    bench = Bench(ROOT, files, flush_disk_type="SYNC_FLUSH").open()
    for number in range(COUNT):
        for topic in TOPICS:
            bench.put(message(number, topic=topic, body=b"%d" % number + b"x" * 300))
        if number == COUNT // 2:
            bench.run_io()
            bench.tick(61_000)
    bench.store.on_flushed(bench.store.max_offset_physical, lambda is_flushed: None)
    bench.run_io()
    end(files, bench, how)
    return files


def check_all(bench: Bench, count: int = COUNT) -> None:
    for topic in TOPICS:
        found = read_queue(bench.store, topic)
        assert [int(each.body.split(b"x")[0]) for each in found] == list(range(count))


@pytest.mark.parametrize("disk", ["no block", "no write"])
@pytest.mark.parametrize("how", ["killed", "without power", "stopped"])
def test_reliability_08_start_on_a_full_disk(how: str, disk: str) -> None:
    files = filled(how)
    fill_disk(files, disk)
    bench = Bench(ROOT, files).open()
    for _ in range(3):
        bench.tick()
    check_all(bench)
    if disk == "no write":
        assert "no space left" in (bench.store.read_only_reason or "")
        assert bench.store.put(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    # A second crash and start while the disk is still full.
    files.kill()
    files.fault = None
    fill_disk(files, disk)
    bench = Bench(ROOT, files).open()
    bench.tick()
    check_all(bench)
    # Free space ends the refusal without a restart.
    free_disk(files)
    for _ in range(3):
        bench.tick()
    assert bench.store.writable, bench.store.read_only_reason
    for topic in TOPICS:
        bench.put(message(COUNT, topic=topic, body=b"%d" % COUNT))
    check_all(bench, COUNT + 1)
    bench.run_io()
    bench.tick(61_000)
    bench.store.close()
    assert not files.exists(ROOT / "abort")
    bench = Bench(ROOT, files).open()
    check_all(bench, COUNT + 1)
    assert len(query(bench.store, "order-3").records) == 1
    bench.store.close()


@pytest.mark.parametrize("disk", ["no block", "no write"])
def test_deletions_free_space_after_the_start(disk: str) -> None:
    files = filled("killed")
    fill_disk(files, disk)
    bench = Bench(ROOT, files, clean_resource_interval=10, delete_when="").open()
    bench.tick()
    bench.store.delete_topic("TopicMore")
    bench.run_io()
    assert bench.store.queue_range("TopicMore", 0) == (0, 0)
    assert not files.names(ROOT / "consumequeue" / "TopicMore")
    first = bench.store.min_offset_physical
    used = files.used
    bench.now_ms += 100 * 3_600_000
    bench.store.delete_expired_files()
    for _ in range(5):
        bench.tick()
    assert bench.store.min_offset_physical > first
    assert files.used < used
    numbers = [each.queue_offset for each in read_queue(bench.store)]
    assert numbers == list(range(numbers[0], COUNT))
    assert numbers[0] > 0


def test_messages_are_refused_until_the_start_is_complete(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = filled("killed")
    fill_disk(files, "no write")
    bench = Bench(ROOT, files).open()
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            bench.tick()
    assert "the start of the store is not complete" in (bench.store.read_only_reason or "")
    free_disk(files)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            bench.tick()
    assert bench.store.writable
    assert caplog.text.count("the start of the store is complete") == 1


def test_a_start_without_an_abort_file_refuses_messages_on_a_full_disk() -> None:
    """Without the file, the start after the next crash would count as clean."""
    files = filled("stopped")
    fill_disk(files, "no write")
    bench = Bench(ROOT, files).open()
    assert not files.exists(ROOT / "abort")
    assert bench.store.put(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    free_disk(files)
    bench.tick()
    assert files.exists(ROOT / "abort")
    bench.put(message(COUNT))


def test_a_rebuild_that_does_not_fit_into_memory_is_refused_clearly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core_broker.store.recovery.HELD_BYTES_MAX", 1000)
    monkeypatch.setattr("core_broker.store.recovery.HELD_CHECK_RECORDS", 10)
    monkeypatch.setattr("core_broker.store.consume_queues.TAIL_BYTES_MAX", 100)
    files = filled("killed")
    files.remove_tree(ROOT / "consumequeue")
    files.remove_tree(ROOT / "index")
    fill_disk(files, "no write")
    with pytest.raises(StoreFull, match="free space on the disk and start again"):
        Bench(ROOT, files).open()
