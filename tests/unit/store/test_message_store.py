"""The store's interface for the broker: put, refuse, start, stop, delete."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import StoreLocked, StoreReadOnly
from core_broker.message.record import decode_record, encode_record
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store import MessageStore, PutStatus
from core_broker.store.appender import STAGED_BYTES_MAX
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.files import DiskFiles
from core_broker.store.segments import Segment
from tests.support.stores import (
    NOW_MS,
    SEGMENT_BYTES,
    Bench,
    message,
    query,
    read_queue,
    store_config,
)

MIB = 1024 * 1024


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path).open()
    yield bench
    bench.store.close()


@pytest.fixture
def big(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, mapped_file_size_commit_log=16 * MIB).open()
    yield bench
    bench.store.close()


def test_a_record_lies_in_the_log_as_it_is_encoded(bench: Bench) -> None:
    first, second = bench.put_many(2)
    expected = encode_record(
        message(1),
        queue_offset=1,
        physical_offset=first.offset_end,
        store_timestamp=NOW_MS,
    )
    assert second.offset_physical == first.offset_end == first.size
    assert (second.offset_logical, second.size) == (1, len(expected))
    assert second.store_timestamp == NOW_MS
    assert bench.store.read_at(second.offset_physical) == expected


def test_nothing_is_seen_before_the_turn_is_written(bench: Bench) -> None:
    heard: list[tuple[Any, ...]] = []
    hear = ArrivalListener({"TopicTest"}, lambda *arrived: heard.append(arrived))
    bench.store.arrival_listeners.append(hear)
    bench.store.put(message(0))
    bench.store.put(message(0, queue_id=1))
    assert bench.store.queue_range("TopicTest", 0) == (0, 0)
    assert bench.store.max_offset_physical == 0
    assert heard == []
    bench.store.write_staged()
    assert bench.store.queue_range("TopicTest", 0) == (0, 1)
    told = sorted((*each[:4], len(each[4]())) for each in heard)
    assert told == [("TopicTest", 0, 0, 1, 1), ("TopicTest", 1, 0, 1, 1)]
    bench.store.write_staged()
    assert len(heard) == 2


@pytest.mark.parametrize(
    ("body", "properties", "status"),
    [
        (4 * MIB - 1, 0, PutStatus.PUT_OK),
        (4 * MIB, 16 * 1024, PutStatus.PUT_OK),
        (4 * MIB + 1, 0, PutStatus.MESSAGE_ILLEGAL),
        (0, 0, PutStatus.PUT_OK),
        (10, 32_767, PutStatus.PUT_OK),
        (10, 32_768, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        (10, 70_000, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
)
def test_limits_of_size(big: Bench, body: int, properties: int, status: PutStatus) -> None:
    text = {"K": "v" * (properties - 2)} if properties else {}
    result = big.store.put(message(0, body=b"x" * body, properties=text))
    assert result.status is status
    assert (big.store._log.position > 0) is (status is PutStatus.PUT_OK)


@pytest.mark.parametrize("topic", ["", "..", "a/b", "x" * 128])
def test_a_topic_that_cannot_be_stored_is_refused(bench: Bench, topic: str) -> None:
    assert bench.store.put(message(0, topic=topic)).status is PutStatus.MESSAGE_ILLEGAL
    results = bench.store.put_batch([message(0), message(1, topic=topic)])
    assert [each.status for each in results] == [PutStatus.MESSAGE_ILLEGAL] * 2
    assert bench.store._log.position == 0


def test_numbers_that_do_not_fit_their_fields_are_refused(bench: Bench) -> None:
    inner = message(0)
    inner.flag = 1 << 40
    assert bench.store.put(inner).status is PutStatus.MESSAGE_ILLEGAL


def test_a_message_larger_than_a_segment_is_refused(bench: Bench) -> None:
    result = bench.store.put(message(0, body=b"x" * SEGMENT_BYTES))
    assert result.status is PutStatus.MESSAGE_ILLEGAL
    assert bench.put(message(1))[0].offset_physical == 0


def test_a_turn_that_stages_too_much_is_told_to_wait(
    big: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.store.appender.STAGED_BYTES_MAX", 1000)
    assert STAGED_BYTES_MAX > 1000
    assert big.store.put(message(0, body=b"x" * 2000)).status is PutStatus.PUT_OK
    assert big.store.put(message(1)).status is PutStatus.OS_PAGE_CACHE_BUSY
    big.store.write_staged()
    assert big.store.put(message(1)).status is PutStatus.PUT_OK


def test_records_roll_over_into_the_next_segment(bench: Bench) -> None:
    results = bench.put_many(40, body=b"x" * 1000)
    starts = [each.offset_physical for each in results if each.offset_physical % SEGMENT_BYTES == 0]
    assert starts == [0, SEGMENT_BYTES, 2 * SEGMENT_BYTES, 3 * SEGMENT_BYTES]
    assert [each.queue_offset for each in read_queue(bench.store)] == list(range(40))
    assert [each.offset_logical for each in results] == list(range(40))


def test_a_batch_stays_together(bench: Bench) -> None:
    bench.put_many(12, body=b"x" * 1000)
    batch = [message(number, body=b"y" * 1000) for number in range(5)]
    results = bench.store.put_batch(batch)
    bench.store.write_staged()
    assert results[0].offset_physical == SEGMENT_BYTES
    assert [each.offset_logical for each in results] == list(range(12, 17))
    ends = [each.offset_end for each in results]
    assert [each.offset_physical for each in results[1:]] == ends[:-1]
    assert [each.body[:1] for each in read_queue(bench.store)[12:]] == [b"y"] * 5


def test_a_batch_may_go_to_several_queues(bench: Bench) -> None:
    batch = [message(number, queue_id=number % 2) for number in range(4)]
    results = bench.store.put_batch(batch)
    assert [each.offset_logical for each in results] == [0, 0, 1, 1]
    bench.store.write_staged()
    assert bench.store.queue_range("TopicTest", 1) == (0, 2)
    assert bench.store.put_batch([]) == []


def test_a_batch_with_one_bad_message_stores_nothing(bench: Bench) -> None:
    bad = message(2, properties={"K": "v" * 40_000})
    results = bench.store.put_batch([message(0), message(1), bad])
    assert {each.status for each in results} == {PutStatus.PROPERTIES_SIZE_EXCEEDED}
    too_many = [message(number, body=b"x" * 1000) for number in range(17)]
    results = bench.store.put_batch(too_many)
    assert {each.status for each in results} == {PutStatus.MESSAGE_ILLEGAL}
    assert bench.put(message(3))[0] == bench.store.put(message(3)).__class__(
        PutStatus.PUT_OK, 0, 0, len(bench.store.read_at(0) or b""), NOW_MS
    )


def test_a_batch_is_no_larger_than_a_message_may_be(big: Bench) -> None:
    """The limit covers the bodies, not the other fields of the records."""
    half = [message(number, body=b"x" * (2 * MIB + number)) for number in range(2)]
    assert {each.status for each in big.store.put_batch(half)} == {PutStatus.MESSAGE_ILLEGAL}
    less = [message(number, body=b"x" * 2 * MIB) for number in range(2)]
    assert {each.status for each in big.store.put_batch(less)} == {PutStatus.PUT_OK}


def test_transaction_halves_have_no_place_in_a_queue(bench: Bench) -> None:
    inner = message(0)
    inner.sys_flag = 4
    (result,) = bench.put(inner)
    record = bench.store.read_at(result.offset_physical)
    assert record is not None
    assert decode_record(record).queue_offset == 0
    assert bench.store.queue_range("TopicTest", 0) == (0, 0)
    assert bench.put(message(1))[0].offset_logical == 0


def test_a_write_that_fails_leaves_the_store_readable_and_closed_for_messages(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put(message(0))

    def broken(self: Segment, data: bytes, offset: int) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(Segment, "write", broken)
    bench.store.put(message(1))
    with pytest.raises(StoreReadOnly, match="input/output error"):
        bench.store.write_staged()
    assert len(read_queue(bench.store)) == 1
    assert query(bench.store, "order-1").records == []
    assert "writing the commit log failed" in str(bench.store.read_only_reason)
    assert bench.store.put(message(2)).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_before_the_start_and_after_the_end_nothing_is_taken(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.store.load()
    assert bench.store.put(message(0)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert bench.store.read_only_reason == "the store is not running"
    bench.store.close()
    bench.store.close()
    assert bench.store.put(message(0)).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_a_folder_in_use_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(StoreLocked):
        Bench(tmp_path).open()
    program = (
        "import sys\n"
        "from core_broker.config import BrokerConfig\n"
        "from core_broker.store import MessageStore\n"
        "MessageStore(BrokerConfig(store_path_root_dir=sys.argv[1])).load()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "in use by another broker; stop it or set another storePathRootDir" in result.stderr


def test_the_abort_file_is_there_while_the_store_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    assert (tmp_path / "abort").read_text() == DiskFiles().boot_id()
    bench.store.close()
    assert not (tmp_path / "abort").exists()


def test_the_commit_log_may_lie_elsewhere(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "store", store_path_commit_log=str(tmp_path / "log")).open()
    bench.put(message(0))
    bench.store.close()
    assert (tmp_path / "log" / "00000000000000000000").exists()
    assert not (tmp_path / "store" / "commitlog").exists()


def test_a_deleted_topic_begins_at_zero_again(bench: Bench, tmp_path: Path) -> None:
    bench.put_many(50)
    bench.put(message(0, topic="Other"))
    bench.tick()
    bench.store.delete_topic("TopicTest")
    assert bench.store.topics_on_disk() == ["Other"]
    assert bench.store.queue_range("TopicTest", 0) == (0, 0)
    assert bench.put(message(7))[0].offset_logical == 0
    bench.tick()
    assert [each.body for each in read_queue(bench.store)] == [b"message 7"]
    assert list((tmp_path / "trash").iterdir()) == []
    bench.store.delete_topic("Unknown")


def test_a_deleted_topic_stays_deleted_after_a_crash(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(50)
    bench.tick()
    bench.store.delete_topic("TopicTest")
    bench.tick()
    assert bench.store._locks is not None
    bench.store._locks.release()
    again = Bench(tmp_path).open()
    assert again.store.topics_on_disk() == []
    again.store.close()


def test_queues_without_messages_can_be_cleaned(bench: Bench) -> None:
    bench.put(message(0, topic="Old"), message(0, topic=SCHEDULE_TOPIC))
    bench.put_many(40, body=b"x" * 1000)
    bench.store._log.mark_flushed(bench.store.max_offset_physical)
    assert bench.store.clean_expired_queues() == 0
    bench.store._log.forget_oldest()
    assert bench.store.clean_expired_queues() == 1
    assert sorted(bench.store.topics_on_disk()) == sorted([SCHEDULE_TOPIC, "TopicTest"])


def test_figures(bench: Bench) -> None:
    bench.store.tick(0)
    bench.put_many(10)
    bench.store.put(message(0, topic="a/b"))
    bench.store.get("TopicTest", 0, 0, 32)
    bench.store.get("TopicTest", 0, 10, 32)
    bench.store.tick(1000)
    stats = bench.store.stats()
    assert (stats.put_times_total, stats.put_failed_times) == (10, 1)
    assert stats.put_size_total == stats.commit_log_max_offset == bench.store.max_offset_physical
    assert stats.put_average_size == stats.put_size_total / 10
    assert (stats.get_found_times, stats.get_missed_times) == (1, 1)
    assert stats.get_transferred_messages == 10
    assert stats.put_tps == (10.0, 10.0, 10.0)
    assert stats.earliest_message_timestamp == NOW_MS
    assert stats.to_flush_bytes == stats.commit_log_max_offset - stats.flushed_offset


async def test_on_a_real_loop_with_real_threads(tmp_path: Path) -> None:
    config = store_config(tmp_path, flush_disk_type="SYNC_FLUSH")
    store = MessageStore(config)
    store.load()
    store.start(asyncio.get_running_loop())
    flushed: asyncio.Queue[bool] = asyncio.Queue()
    for number in range(200):
        result = store.put(message(number))
        store.on_flushed(result.offset_end, flushed.put_nowait)
        if number % 7 == 0:
            store.write_staged()
            await asyncio.sleep(0)
    store.write_staged()
    for _ in range(200):
        assert await asyncio.wait_for(flushed.get(), 60)
    store.close()
    again = MessageStore(config)
    again.load()
    assert len(read_queue(again)) == 200
    again.close()


def test_a_new_store_starts_at_once_and_takes_little_of_the_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path, mapped_file_size_commit_log=1 << 30).open()
    bench.run_io()
    segment = tmp_path / "commitlog" / "00000000000000000000"
    assert segment.stat().st_size == 1 << 30
    assert segment.stat().st_blocks * 512 < 16 * MIB
    bench.store.close()
