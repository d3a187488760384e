"""Truncation of a store: what is refused, the file of a truncation under way, and a second life."""

import random
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from core_broker.errors import StoreCorrupt, StoreReadOnly, TruncationRefused
from core_broker.store import PutStatus
from core_broker.store.checkpoint import DispatchCheckpoint
from core_broker.store.files import read_file, replace_file
from core_broker.store.simulated_files import SimulatedFiles
from core_broker.store.truncation import (
    Rollback,
    Truncation,
    encode_truncation,
    parse_truncation,
)
from tests.support.stores import SEGMENT_BYTES, Bench, StillLoop, message, read_queue

ROOT = Path("/store")
NOTE = ROOT / "truncation.json"
EXAMPLE = Truncation(
    4096,
    4000,
    DispatchCheckpoint(4000, 0, 3900, {"A": {0: (0, 7)}}, {"20260101000000000": 3900}, 1024),
    {"A": {0: 7, 3: 0}},
    Rollback({3: 5, 18: 0}, (2, 4)),
)


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def bench(files: SimulatedFiles) -> Iterator[Bench]:
    """A store with 80 messages in several segments."""
    made = Bench(ROOT, files).open()
    made.put_many(80, body=b"x" * 500)
    assert made.store.max_offset_physical > 2 * SEGMENT_BYTES
    yield made
    made.store.close()


def truncate(bench: Bench, offset: int, confirm: int = 0) -> None:
    bench.store.pause()
    bench.store.truncator.begin(offset, confirm, Rollback())
    bench.store.reload()
    bench.store.truncator.end()
    resume(bench)


def resume(bench: Bench) -> None:
    bench.store.start(StillLoop())  # type: ignore[arg-type]


def place(bench: Bench, number: int) -> int:
    """The physical offset of a message."""
    (unit,) = bench.store.queue_units("TopicTest", 0, number, 1)
    return unit.offset_physical


@pytest.mark.parametrize(
    "truncation", [EXAMPLE, Truncation(0, 0, EXAMPLE.checkpoint, {}, Rollback())]
)
def test_the_file_of_a_truncation(truncation: Truncation) -> None:
    assert parse_truncation(encode_truncation(truncation)) == truncation


def test_a_changed_file_is_refused() -> None:
    content = encode_truncation(EXAMPLE)
    dice = random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        with pytest.raises(ValueError):  # noqa: PT011 - the reason differs
            parse_truncation(bytes(damaged))
    for end in range(len(content)):
        with pytest.raises(ValueError):  # noqa: PT011
            parse_truncation(content[:end])


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"7", b'{"physicalOffset": 1, "confirmOffset": 2, "checkpoint": {}}']
)
def test_a_file_of_another_content_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_truncation(b"%d\n" % crc32(line) + line)


def test_a_start_with_a_damaged_file_is_refused(bench: Bench, files: SimulatedFiles) -> None:
    """A wrong offset would drop other messages."""
    bench.store.close()
    replace_file(files, NOTE, encode_truncation(EXAMPLE)[:-5])
    with pytest.raises(StoreCorrupt, match=r"truncation\.json"):
        Bench(ROOT, files).open()
    files.remove(NOTE)
    assert len(read_queue(Bench(ROOT, files).open().store)) == 80


@pytest.mark.parametrize("number", [0, 1, 30, 79])
def test_a_running_store_continues_at_the_point(bench: Bench, number: int) -> None:
    point = place(bench, number)
    truncate(bench, point, point)
    assert bench.store.max_offset_physical == point
    assert len(read_queue(bench.store)) == number
    (result,) = bench.put(message(500))
    assert (result.offset_logical, result.offset_physical) == (number, point)
    bench.tick()
    assert [each.queue_offset for each in read_queue(bench.store)] == list(range(number + 1))


def test_a_truncation_may_be_followed_by_another(bench: Bench) -> None:
    for number in (60, 40, 20):
        truncate(bench, place(bench, number))
        bench.put_many(3, first=100)
        bench.tick()
    assert len(read_queue(bench.store)) == 23


def test_the_end_of_the_log_drops_nothing(bench: Bench) -> None:
    end = bench.store.max_offset_physical
    truncate(bench, end, end)
    assert bench.store.max_offset_physical == end
    assert len(read_queue(bench.store)) == 80


def test_confirmed_messages_are_never_dropped(bench: Bench) -> None:
    with pytest.raises(TruncationRefused, match="confirmed"):
        truncate(bench, place(bench, 30), place(bench, 31))
    check_unchanged(bench)


@pytest.mark.parametrize("distance", [-1, 1, 4, 91, 300])
def test_a_point_within_a_record_is_refused(bench: Bench, distance: int) -> None:
    with pytest.raises(TruncationRefused, match="no record"):
        truncate(bench, place(bench, 30) + distance)
    check_unchanged(bench)


@pytest.mark.parametrize("beyond", [1, 10**9])
def test_a_point_behind_the_log_is_refused(bench: Bench, beyond: int) -> None:
    with pytest.raises(TruncationRefused, match="offsets"):
        truncate(bench, bench.store.max_offset_physical + beyond)
    check_unchanged(bench)


def check_unchanged(bench: Bench) -> None:
    """The refused truncation left no trace, and the store goes on."""
    assert not bench.store._files.exists(NOTE)
    resume(bench)
    assert len(read_queue(bench.store)) == 80
    assert bench.store.put(message(81)).status is PutStatus.PUT_OK


def test_a_damaged_record_at_the_point_is_no_obstacle(bench: Bench, files: SimulatedFiles) -> None:
    point = place(bench, 30)
    path = ROOT / "commitlog" / f"{point - point % SEGMENT_BYTES:020d}"
    files.flip_bit(path, point % SEGMENT_BYTES + 200)
    truncate(bench, point)
    assert len(read_queue(bench.store)) == 30


def test_the_store_does_not_start_before_the_end_of_the_truncation(bench: Bench) -> None:
    bench.store.pause()
    bench.store.truncator.begin(place(bench, 30), 0, Rollback())
    bench.store.reload()
    with pytest.raises(StoreReadOnly, match="unfinished"):
        resume(bench)
    bench.store.truncator.end()
    resume(bench)
    assert read_file(bench.store._files, ROOT / "checkpoint")


def test_old_segments_stay_deleted(bench: Bench) -> None:
    """Segments that expired, and whose files are not deleted yet, do not come back."""
    point = place(bench, 79)
    bench.tick()
    bench.now_ms += 80 * 3_600_000
    bench.store.delete_expired_files()
    bench.store.tick(bench.now_ms)
    bench.run_io()
    low = bench.store.min_offset_physical
    assert low > 0
    truncate(bench, point)
    assert bench.store.min_offset_physical == low
    assert bench.store.max_offset_physical == point
