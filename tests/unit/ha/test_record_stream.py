"""Records of a master's log: any cut of the bytes, and bytes that are no records."""

import random
from pathlib import Path
from struct import pack

import pytest

from core_broker.ha.faults import DamagedStream
from core_broker.ha.record_stream import RECORD_BYTES_MAX, RecordStream
from core_broker.message.record_layout import BLANK_MAGIC, RECORD_MAGIC_V1
from tests.support.replicas import log_bytes, records_of
from tests.support.stores import SEGMENT_BYTES, Bench, message

GIB = 1024**3


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """The log of a store with three segments."""
    bench = Bench(tmp_path).open()
    dice = random.Random(1)
    bench.put(*(message(each, body=bytes(dice.randrange(900))) for each in range(60)))
    data = log_bytes(bench.store, 0)
    bench.store.close()
    assert len(data) > 2 * SEGMENT_BYTES
    return data


@pytest.mark.parametrize("seed", range(20))
def test_any_cut_gives_the_same_records(log: bytes, seed: int) -> None:
    dice = random.Random(seed)
    stream = RecordStream(0, SEGMENT_BYTES)
    stretches = []
    at = 0
    while at < len(log):
        size = dice.choice((1, 3, 8, 50, 300, 5_000, 70_000))
        stretches += stream.feed(log[at : at + size])
        at = min(at + size, len(log))
        assert stream.end == at
    assert b"".join(each.data for each in stretches) == log
    records = records_of(stretches)
    assert records == records_of(RecordStream(0, SEGMENT_BYTES, is_compiled=False).feed(log))
    assert len(records) == 60
    for stretch in stretches:
        last = stretch.offset + len(stretch.data) - 1
        assert stretch.offset // SEGMENT_BYTES == last // SEGMENT_BYTES
    assert sum(not each.records for each in stretches) == len(log) // SEGMENT_BYTES


def test_the_bytes_behind_a_blank_record_are_kept(log: bytes) -> None:
    """A Java broker may leave bytes of an earlier use of the file there."""
    blank = log.index(pack(">I", BLANK_MAGIC)) - 4
    size = int.from_bytes(log[blank : blank + 4], "big")
    dirty = pack(">II", size, BLANK_MAGIC) + b"x" * (size - 8)
    stretches = RecordStream(0, SEGMENT_BYTES).feed(log[:blank] + dirty)
    assert (stretches[-1].data, stretches[-1].records) == (dirty, [])


@pytest.mark.parametrize(
    ("bytes_", "reason"),
    [
        (b"GET / HTTP/1.1", "no record begins there"),
        (bytes(8), "no record begins there"),
        (pack(">iI", -1, RECORD_MAGIC_V1), "cannot lie there"),
        (pack(">iI", 2**31 - 1, RECORD_MAGIC_V1), "cannot lie there"),
        (pack(">iI", 12, RECORD_MAGIC_V1), "cannot lie there"),
        (pack(">iI", GIB - 4, RECORD_MAGIC_V1), "cannot lie there"),
        (pack(">iI", RECORD_BYTES_MAX + 1, RECORD_MAGIC_V1), f"accepts {RECORD_BYTES_MAX} at most"),
        (pack(">iI", 4096, BLANK_MAGIC), "mappedFileSizeCommitLog"),
        (pack(">iI", GIB, BLANK_MAGIC), f"accepts {RECORD_BYTES_MAX} at most"),
    ],
)
def test_a_start_that_is_no_record_is_refused_before_its_body(bytes_: bytes, reason: str) -> None:
    with pytest.raises(DamagedStream, match=reason):
        RecordStream(0, GIB).feed(bytes_)


@pytest.mark.parametrize("seed", range(10))
def test_a_damaged_record_is_refused_and_earlier_records_are_lost_with_it(
    log: bytes, seed: int
) -> None:
    """A record of another offset, as after an append to a diverged log."""
    dice = random.Random(seed)
    records = records_of(RecordStream(0, SEGMENT_BYTES).feed(log)[:1])
    hit = dice.choice(records[1:])
    damaged = bytearray(log[: hit.offset + hit.size])
    damaged[hit.offset + 28 : hit.offset + 36] = pack(">q", hit.offset + dice.choice((-1, 1, 4096)))
    with pytest.raises(DamagedStream, match=f"offset {hit.offset}: a record of offset"):
        RecordStream(0, SEGMENT_BYTES).feed(bytes(damaged))
