"""A log with a lost or truncated end ends with the last whole record.

`CUT_STRIDE=1` cuts at every byte instead of some.
"""

import copy
import os
from pathlib import Path

import pytest

from core_broker.message.record_layout import HEAD
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import SEGMENT_BYTES, Bench, message, read_queue

ROOT = Path("/store")
#: Distance of the cuts, bytes: a prime, so that cuts fall everywhere in sectors and records.
STRIDE = int(os.environ.get("CUT_STRIDE", "397"))
#: Topic and properties have no checksum: behind the body, only missing bytes and invalid text are
#: detectable.
PROPERTIES_AT = HEAD.size + len(b"message 19")


def filled(count: int, body_bytes: int = 0) -> tuple[SimulatedFiles, list[tuple[int, int]]]:
    """A disk with a killed store, and the start and end of each message."""
    files = SimulatedFiles()
    bench = Bench(ROOT, files).open()
    spans = []
    for number in range(count):
        body = b"message %d" % number
        inner = message(number, queue_id=number % 2, body=body + bytes([65]) * body_bytes)
        (result,) = bench.put(inner)
        spans.append((result.offset_physical, result.offset_end))
    bench.run_io()
    files.kill()
    return files, spans


def recovered(files: SimulatedFiles) -> tuple[int, int]:
    """Start the store, and cut the power; return the end of the log and the number of messages."""
    bench = Bench(ROOT, files).open()
    count = sum(len(read_queue(bench.store, queue_id=each)) for each in (0, 1))
    end = bench.store.max_offset_physical
    files.power_cut()
    return end, count


def check_end(files: SimulatedFiles, end: int, count: int) -> None:
    """The log ends at this offset, durably, and the next put continues from there."""
    assert recovered(files) == (end, count)
    assert recovered(files) == (end, count), "the cut is not durable"
    bench = Bench(ROOT, files).open()
    (result,) = bench.put(message(count, queue_id=count % 2))
    assert result.offset_logical == count // 2
    assert result.offset_physical >= end
    files.kill()
    assert recovered(files)[1] == count + 1


@pytest.mark.parametrize("rest", ["nothing", "zeros", "ones", "an older record"])
def test_reliability_04_torn_last_record(rest: str) -> None:
    original, spans = filled(20)
    start, end = spans[-1]
    size = end - start
    older = original.open(log_path(0)).pread(size, spans[-2][0])
    fill = {"zeros": bytes(size), "ones": b"\xff" * size, "an older record": older}.get(rest)
    for length in range(PROPERTIES_AT if rest == "an older record" else size):
        files = copy.deepcopy(original)
        if fill is None:
            files.open(log_path(0)).truncate(start + length)
        else:
            files.open(log_path(0)).pwrite(fill[length:], start + length)
        check_end(files, start, 19)
        # The bytes behind the cut are zeros now, except the added message.
        assert not any(files.open(log_path(0)).pread(SEGMENT_BYTES, start + 2 * size))


@pytest.mark.parametrize("how", ["truncated", "zeroed"])
def test_a_store_cut_at_any_byte_keeps_a_whole_number_of_messages(how: str) -> None:
    original, spans = filled(150, 400)
    ends = [0, *(end for _, end in spans)]
    starts = [start for start, _ in spans]
    assert ends[-1] > 64 * 1024
    for cut in range(ends[-1] - 64 * 1024, ends[-1], STRIDE):
        files = copy.deepcopy(original)
        segment = cut - cut % SEGMENT_BYTES
        for later in range(segment + SEGMENT_BYTES, ends[-1] + 2 * SEGMENT_BYTES, SEGMENT_BYTES):
            files.remove(log_path(later))
        file = files.open(log_path(segment))
        file.truncate(cut - segment)
        if how == "zeroed":
            file.truncate(SEGMENT_BYTES)
        count = sum(end <= cut for end in ends[1:])
        end, found = recovered(files)
        assert found == count, cut
        assert ends[count] <= end <= max(cut, starts[count]), cut


def log_path(start: int) -> Path:
    return ROOT / "commitlog" / f"{start:020d}"
