"""A full disk: messages are refused early, reads continue, free space ends the refusal."""

import errno
import re
from pathlib import Path

import pytest

from core_broker.store import PutStatus
from core_broker.store.preallocation import CHECKS_PER_SEGMENT
from core_broker.store.segments import Segment
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import SEGMENT_BYTES, Bench, message, read_queue

ROOT = Path("/store")


def test_a_full_disk_refuses_and_recovers_without_a_restart() -> None:
    files = SimulatedFiles(0, capacity=8 * SEGMENT_BYTES)
    ballast = files.open(Path("/ballast"), create=True)
    ballast.pwrite(b"x" * 3 * SEGMENT_BYTES, 0)
    bench = Bench(ROOT, files).open()
    bench.run_io()
    stored = 0
    while (result := bench.store.put(message(stored, body=b"x" * 500))).status is PutStatus.PUT_OK:
        bench.store.write_staged()
        bench.run_io()
        stored += 1
        assert stored < 1000
    assert result.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not bench.store.writable
    assert re.search("full|no space", str(bench.store.read_only_reason))
    assert stored > 40
    assert len(read_queue(bench.store)) == stored
    files.remove(Path("/ballast"))
    bench.tick()
    bench.tick()
    assert bench.store.writable
    (result,) = bench.put(message(stored))
    assert result.offset_logical == stored
    files.capacity *= 4
    bench.store.close()
    again = Bench(ROOT, files).open()
    assert len(read_queue(again.store)) == stored + 1


def test_zeros_keep_ahead_of_the_writer() -> None:
    files = SimulatedFiles(0)
    bench = Bench(ROOT, files).open()
    bench.run_io()
    for number in range(100):
        before = bench.store._log.active.filled
        assert bench.store._log.position + 700 < before or before % SEGMENT_BYTES == 0
        bench.put(message(number, body=b"x" * 500))
        bench.run_io()


def test_disks_that_fill_up_while_queues_are_written_lose_nothing() -> None:
    files = SimulatedFiles(0)
    bench = Bench(ROOT, files).open()
    bench.run_io()
    bench.put(message(0))
    bench.run_io()
    files.capacity = files.used
    bench.put(message(1))
    bench.store.tick(bench.now_ms)
    bench.run_io()
    assert bench.store.put(message(2)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert len(read_queue(bench.store)) == 2
    files.capacity *= 4
    bench.tick()
    assert bench.put(message(2))[0].offset_logical == 2
    bench.store.close()
    again = Bench(ROOT, files).open()
    assert [each.body for each in read_queue(again.store)] == [
        b"message %d" % number for number in range(3)
    ]


def test_nothing_to_prepare_is_not_looked_for_at_each_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But a full disk is, and the next look comes before the space is used up."""
    files = SimulatedFiles(0)
    bench = Bench(ROOT, files).open()
    bench.run_io()
    log, looks = bench.store._log, 0
    look = log.to_fill

    def to_fill() -> tuple[Segment, int] | None:
        nonlocal looks
        looks += 1
        return look()

    monkeypatch.setattr(log, "to_fill", to_fill)
    bench.put(message(0))
    bench.run_io()
    bench.store._preallocator.advance()
    looks = 0
    for _ in range(100):
        bench.store._preallocator.advance()
    assert looks == 0
    bench.store._preallocator.note(OSError(errno.ENOSPC, "full"))
    bench.store._preallocator.advance()
    bench.store._preallocator.advance()
    assert looks >= 1
    assert not bench.store._preallocator.is_disk_full
    looks = 0
    bench.put(message(1, body=b"x" * (SEGMENT_BYTES // CHECKS_PER_SEGMENT)))
    assert looks == 1
