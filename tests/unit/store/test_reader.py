"""Reading: limits of one pull, by time, by key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.message.hashing import tags_code
from core_broker.message.record import decode_record
from core_broker.store import GetStatus, MessageStore
from core_broker.store.consume_queue import ConsumeQueue
from tests.support.stores import Bench, message, query, warmed

TOPIC = "TopicTest"
MIB = 1024 * 1024


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[Any]:
    made: list[Bench] = []

    def make(**changes: Any) -> Bench:
        bench = Bench(tmp_path, **{"mapped_file_size_commit_log": 4 * MIB} | changes).open()
        made.append(bench)
        return bench

    yield make
    for each in made:
        each.store.close()


def pulled(store: MessageStore, offset: int, count: int = 32, **more: Any) -> tuple[GetStatus, int]:
    result = warmed(store, lambda: store.get(TOPIC, 0, offset, count, **more))
    return result.status, result.next_offset


def numbers(store: MessageStore, offset: int, count: int = 32, **more: Any) -> list[int]:
    records = warmed(store, lambda: store.get(TOPIC, 0, offset, count, **more)).records
    return [decode_record(each, check_crc=True).queue_offset for each in records]


def test_states_of_a_read_without_messages(benches: Any) -> None:
    bench = benches()
    assert pulled(bench.store, 5) == (GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
    bench.put_many(10)
    assert pulled(bench.store, -1) == (GetStatus.OFFSET_TOO_SMALL, 0)
    assert pulled(bench.store, 10) == (GetStatus.OFFSET_OVERFLOW_ONE, 10)
    assert pulled(bench.store, 99) == (GetStatus.OFFSET_OVERFLOW_BADLY, 10)
    bench.store.put(message(0, queue_id=1))
    assert bench.store.get(TOPIC, 1, 0, 32).status is GetStatus.NO_MESSAGE_IN_QUEUE


def test_one_pull_has_at_most_32_messages(benches: Any) -> None:
    bench = benches()
    bench.put_many(100)
    assert numbers(bench.store, 0, 500) == list(range(32))
    assert numbers(bench.store, 90, 500) == list(range(90, 100))
    assert numbers(bench.store, 3, 4) == [3, 4, 5, 6]
    result = bench.store.get(TOPIC, 0, 0, 500)
    assert (result.count, result.next_offset, result.min_offset, result.max_offset) == (
        32,
        32,
        0,
        100,
    )
    assert not result.is_slow


def test_one_pull_has_at_most_256_kib_but_one_message_whatever_its_size(benches: Any) -> None:
    bench = benches()
    bench.put_many(10, body=b"x" * 100 * 1024)
    bench.put(message(10, body=b"x" * MIB))
    assert numbers(bench.store, 0) == [0, 1]
    assert numbers(bench.store, 10) == [10]
    assert numbers(bench.store, 0, max_bytes=1) == [0]


def test_what_left_the_memory_comes_in_smaller_portions(benches: Any) -> None:
    bench = benches(memory_bytes=1000)
    bench.put_many(40)
    assert numbers(bench.store, 0) == list(range(8))
    assert bench.store.get(TOPIC, 0, 0, 32).is_slow
    bench.put_many(3, first=40, body=b"x" * 40 * 1024)
    bench.put_many(20, first=43)
    assert numbers(bench.store, 40) == [40]


def test_a_filter_passes_over_what_does_not_match(benches: Any) -> None:
    bench = benches()
    bench.put_many(90)
    wanted = tags_code("Tag1")
    assert numbers(bench.store, 0, 5, accept=lambda code: code == wanted) == [1, 4, 7, 10, 13]
    assert pulled(bench.store, 0, 5, accept=lambda code: code == wanted) == (GetStatus.FOUND, 14)
    nothing = pulled(bench.store, 0, 5, accept=lambda code: False)
    # One read scans units of one queue file, or of memory, only.
    assert nothing[0] is GetStatus.NO_MATCHED_MESSAGE
    assert 0 < nothing[1] <= 90


def test_a_filter_looks_at_a_bounded_number_of_messages(benches: Any) -> None:
    bench = benches(mapped_file_size_consume_queue=6_000_000)
    for first in range(0, 1000, 100):
        bench.put(*(message(number) for number in range(first, first + 100)))
    assert pulled(bench.store, 0, accept=lambda code: False) == (GetStatus.NO_MATCHED_MESSAGE, 800)


def test_asking_for_everything_reads_no_more_than_fits(
    benches: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = benches(mapped_file_size_consume_queue=6_000_000)
    bench.put(*(message(number) for number in range(2000)))
    read = ConsumeQueue.read
    units: list[int] = []

    def counted(queue: ConsumeQueue, offset: int, count: int) -> bytes:
        data = read(queue, offset, count)
        units.append(len(data) // 20)
        return data

    monkeypatch.setattr(ConsumeQueue, "read", counted)
    assert bench.store.get(TOPIC, 0, 0, 2**31 - 1).count == 32
    assert sum(units) <= 100
    assert bench.store.get(TOPIC, 0, 0, 2**31 - 1, accept=lambda code: False).count == 0
    assert sum(units) <= 1000


def test_a_damaged_record_is_left_out_and_reported(
    benches: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = benches()
    results = bench.put_many(5)
    segment = tmp_path / "commitlog" / "00000000000000000000"
    with segment.open("r+b") as file:
        file.seek(results[2].offset_physical)
        file.write(b"rotten")
    assert numbers(bench.store, 0) == [0, 1, 3, 4]
    place = results[2].offset_physical
    assert f"{segment} is damaged at {place}: no record" in caplog.text
    assert bench.store.stats().damaged_places == 1
    assert pulled(bench.store, 2, 1) == (GetStatus.MESSAGE_WAS_REMOVING, 3)


def test_records_of_several_queues_are_told_apart(benches: Any) -> None:
    bench = benches()
    for number in range(60):
        bench.put(message(number, queue_id=number % 3, body=bytes([number]) * 700))
    for queue_id in range(3):
        records = bench.store.get(TOPIC, queue_id, 0, 32).records
        bodies = [decode_record(each).body[0] for each in records]
        assert bodies == list(range(queue_id, 60, 3))


def test_records_at_an_offset(benches: Any) -> None:
    bench = benches()
    first, second = bench.put_many(2)
    store = bench.store
    record = store.read_at(second.offset_physical)
    assert record is not None
    assert decode_record(record).queue_offset == 1
    assert store.read_at(second.offset_physical, second.size) == record
    assert store.read_at(second.offset_physical, second.size - 1) is None
    assert store.read_at(first.offset_physical + 1) is None
    assert store.read_at(store.max_offset_physical) is None
    assert store.read_at(-5) is None
    assert store.read_at(1 << 60) is None


def test_units_of_a_queue(benches: Any) -> None:
    bench = benches()
    results = bench.put_many(30)
    units = bench.store.queue_units(TOPIC, 0, 10, 15)
    assert [each.offset_physical for each in units] == [
        each.offset_physical for each in results[10:25]
    ]
    assert units[0].tags_code == tags_code("Tag1")
    assert bench.store.queue_units(TOPIC, 0, 29, 99)[0].size == results[29].size
    assert bench.store.queue_units(TOPIC, 7, 0, 10) == []
    assert bench.store.queue_units(TOPIC, 0, -1, 10) == []


def test_an_offset_by_time_is_that_of_the_nearest_message(benches: Any) -> None:
    bench = benches()
    start = bench.now_ms
    for number, after in enumerate((0, 100, 100, 200, 1000)):
        bench.now_ms = start + after
        bench.put(message(number))
    store = bench.store
    asked = {0: 0, -50: 0, 100: 1, 149: 2, 150: 2, 151: 3, 200: 3, 599: 3, 601: 4, 5000: 4}
    found = {after: store.offset_by_time(TOPIC, 0, start + after) for after in asked}
    assert found == asked
    assert store.offset_by_time(TOPIC, 0, 0) == 0
    assert store.offset_by_time("Unknown", 0, start) == 0
    assert store.store_time_of(TOPIC, 0, 3) == start + 200
    assert store.store_time_of(TOPIC, 0, 5) == -1
    assert store.store_time_of(TOPIC, 0, -1) == -1
    assert store.store_time_of("Unknown", 0, 0) == -1


def test_messages_are_found_by_each_of_their_keys(benches: Any) -> None:
    bench = benches()
    bench.put_many(30)
    store = bench.store

    def found(key: str, count: int = 64) -> list[int]:
        records = query(store, key, count).records
        return [decode_record(each).queue_offset for each in records]

    assert 12 in found("order-12")
    assert 5 in found("7F00000100002A9F0000000000000005")
    assert set(range(3, 30, 7)) <= set(found("customer-3"))
    assert len(found("customer-3", 2)) == 2
    result = query(store, "order-1", 10)
    assert result.index_last_update_timestamp == bench.now_ms
    assert result.index_last_update_phyoffset == store.queue_units(TOPIC, 0, 29, 1)[0][0]
    assert query(store, "order-1", topic="Other").records == []
