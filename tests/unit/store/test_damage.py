"""Bit rot in queues and index: no message is missed or wrong; a search by key may miss one."""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from core_broker.message.record import decode_record
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.damage import PLACES_MAX, Damage
from core_broker.store.files import DiskFiles
from core_broker.store.index_layout import ITEM, IndexLayout
from core_broker.store.segments import OpenFiles
from core_broker.store.unit_layout import UNIT, UNIT_BYTES
from tests.support.stores import Bench, message, query, warmed

TOPIC = "TopicTest"
COUNT = 64
#: Record size, a power of two: one flipped bit of an offset points to another record.
RECORD_BYTES = 256


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Records of equal size of two topics in turn, everything in the files."""
    bench = Bench(tmp_path, mapped_file_size_commit_log=64 * 1024, max_index_num=1000).open()
    properties = {"KEYS": "k000", "TAGS": "A"}
    empty = bench.put(message(0, body=b"", properties=properties, topic="TopicProb"))[0].size
    first = 512 - (bench.store.max_offset_physical - 0)
    assert first > empty
    bench.put(message(0, body=b"x" * (first - empty), properties=properties, topic="TopicProb"))
    body = b"x" * (RECORD_BYTES - empty)
    for number in range(COUNT):
        for topic in (TOPIC, "TopicMore"):
            keys = {"KEYS": f"k{number:03d}", "TAGS": "A"}
            result = bench.put(message(number, topic=topic, body=body, properties=keys))[0]
            assert result.size == RECORD_BYTES
    bench.tick(60_000)
    yield bench
    bench.store.close()


def flip(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at + bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def consumed(bench: Bench) -> list[int]:
    """The numbers of the messages of a queue, checked to belong to the queue."""
    store = bench.store
    offset, end = store.queue_range(TOPIC, 0)
    numbers = []
    while offset < end:
        result = warmed(store, partial(store.get, TOPIC, 0, offset, 32))
        for each in result.records:
            found = decode_record(each)
            assert (found.topic, found.queue_id) == (TOPIC, 0)
            assert found.properties["KEYS"] == f"k{found.queue_offset:03d}"
            numbers.append(found.queue_offset)
        assert result.next_offset > offset
        offset = result.next_offset
    return numbers


def test_a_flipped_bit_in_a_unit_costs_no_message(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = 7
    path = Path(bench.store.config.store_path_root_dir, "consumequeue", TOPIC, "0", "0" * 20)
    right = path.read_bytes()
    for bit in range(96):
        flip(path, damaged * UNIT_BYTES, bit)
        assert consumed(bench) == list(range(COUNT)), bit
        assert path.read_bytes() == right, bit
    assert (bench.store.stats().damaged_places, bench.store.stats().repaired_units) == (0, 96)
    assert f"{path} was damaged at {damaged * UNIT_BYTES}: unit 7 is rebuilt" in caplog.text


def test_a_flipped_bit_in_an_index_item_brings_no_wrong_message(bench: Bench) -> None:
    layout = IndexLayout(64, 1000)
    (path,) = Path(bench.store.config.store_path_root_dir, "index").iterdir()
    keys = [f"k{number:03d}" for number in range(17, 22)]  # item 40 is found
    for bit in range(8 * ITEM.size):
        flip(path, layout.item_at(40), bit)
        for key in keys:
            for record in query(bench.store, key).records:
                found = decode_record(record)
                assert (found.topic, found.properties["KEYS"]) == (TOPIC, key)
        flip(path, layout.item_at(40), bit)


def test_damage_of_the_index_is_reported(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    layout = IndexLayout(64, 1000)
    (path,) = Path(bench.store.config.store_path_root_dir, "index").iterdir()
    at = layout.item_at(40)
    flip(path, at + 4 + 6, 0)  # the item points to the next record
    flip(path, layout.item_at(60) + 16, 7)  # an impossible item before it
    for number in range(COUNT):
        query(bench.store, f"k{number:03d}")
        query(bench.store, f"k{number:03d}", topic="TopicMore")
    assert f"{path} is damaged at {at}: it points to" in caplog.text
    assert f"{path} is damaged at {layout.item_at(60)}: item 60 names item" in caplog.text
    assert bench.store.stats().damaged_places == 2


def test_a_search_by_time_steps_over_a_damaged_unit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, mapped_file_size_commit_log=64 * 1024).open()
    start = bench.now_ms
    for number in range(41):
        bench.now_ms = start + number * 1000
        bench.put(message(number))
    bench.tick(60_000)
    path = tmp_path / "consumequeue" / TOPIC / "0"
    middle = 20  # where the search begins
    unit = (sorted(path.iterdir())[middle // 20], middle % 20 * UNIT_BYTES)
    for bit in range(96):
        flip(*unit, bit)
        for number in (3, 19, 21, 33):
            ask = partial(bench.store.offset_by_time, TOPIC, 0, start + number * 1000)
            assert warmed(bench.store, ask) == number
        flip(*unit, bit)
    bench.store.close()


def test_a_place_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    damage = Damage()
    for _ in range(3):
        damage.report(Path("a"), 5, "rotten")
        damage.report(Path("a"), 6, "rotten")
    assert damage.count == 2
    assert caplog.text.count("rotten") == 2
    with caplog.at_level(logging.CRITICAL):
        for number in range(PLACES_MAX + 5):
            damage.report(Path("b"), number, "rotten")
    assert damage.count == PLACES_MAX + 7


@pytest.mark.parametrize("damaged", range(31, 64))
def test_a_damaged_unit_hides_no_message_when_the_log_is_trimmed(
    tmp_path: Path, damaged: int
) -> None:
    files = DiskFiles()
    queue = ConsumeQueue(files, OpenFiles(files, 4), tmp_path / "T" / "0", 64 * UNIT_BYTES, {})
    for number in range(64):
        queue.append(1000 + number * 100, 100, 0)
    queue.publish()
    queue.write_tail()
    (path,) = (tmp_path / "T" / "0").iterdir()
    with path.open("r+b") as file:
        file.seek(damaged * UNIT_BYTES)
        file.write(UNIT.pack(1, 100, 0))
    queue.advance_min(1000 + 30 * 100)
    assert queue.min_offset == 30
