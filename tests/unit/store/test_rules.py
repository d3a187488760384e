"""Rules of RocketMQ's store without tests elsewhere, with known answers."""

import struct
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.message.record import decode_record, encode_record
from core_broker.message.record_layout import RECORD_MAGIC_V2, STORE_TIMESTAMP_AT
from core_broker.store.consume_queue import ConsumeQueue, _all_valid
from core_broker.store.files import DiskFiles
from core_broker.store.key_index import KeyIndex
from core_broker.store.log_reader import Owner, Wanted
from core_broker.store.segments import OpenFiles
from core_broker.store.unit_layout import UNIT
from tests.support.stores import NOW_MS, Bench, message, read_queue

HOSTS = (("192.0.2.7", 1234), ("2001:db8::7", 1234))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path).open()
    yield bench
    bench.store.close()


def queue_of(folder: Path, topic: str, queue_id: int = 0) -> ConsumeQueue:
    files = DiskFiles()
    return ConsumeQueue(files, OpenFiles(files, 4), folder / topic / str(queue_id), 400, {})


def test_messages_with_every_kind_of_hosts_lie_in_one_queue(bench: Bench) -> None:
    expected: list[object] = []
    for born in HOSTS:
        for store in HOSTS:
            inner = message(len(expected))
            inner.born_host, inner.store_host = born, store
            bench.put(inner)
            expected.append((born, store))
    assert [(each.born_host, each.store_host) for each in read_queue(bench.store)] == expected
    assert bench.store.store_time_of("TopicTest", 0, 3) == NOW_MS


def test_store_times_never_go_backwards(bench: Bench) -> None:
    for at in (NOW_MS, NOW_MS + 5_000, NOW_MS - 60_000, NOW_MS + 5_001):
        bench.now_ms = at
        bench.put(message(0))
    times = [each.store_timestamp - NOW_MS for each in read_queue(bench.store)]
    assert times == [0, 5_000, 5_000, 5_001]


def test_a_batch_that_does_not_fit_goes_to_the_next_segment_as_a_whole(bench: Bench) -> None:
    size = bench.put(message(0, body=b"x" * 9_000))[0].size
    results = bench.store.put_batch([message(number, body=b"y" * 3_000) for number in range(3)])
    bench.store.write_staged()
    first = Path(bench.store.config.store_path_root_dir, "commitlog", "0" * 20).read_bytes()
    assert struct.unpack_from(">ii", first, size) == (16 * 1024 - size, -875286124)
    assert results[0].offset_physical == 16 * 1024
    assert results[2].offset_end < 32 * 1024


def test_a_new_index_file_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    index = KeyIndex(DiskFiles(), tmp_path, 16, 4)
    index.add(array("q", [7, 0, NOW_MS, 7, 100, NOW_MS + 1000, 7, 200, NOW_MS + 2000]))
    index._append_file(NOW_MS + 9_999)
    for flush in index.take_flushes():
        flush.run()
    headers = [
        struct.unpack(">qqqqii", path.read_bytes()[:40]) for path in sorted(tmp_path.iterdir())
    ]
    assert headers == [
        (NOW_MS, NOW_MS + 2_000, 0, 200, 1, 4),
        (NOW_MS + 2_000, NOW_MS + 2_000, 200, 200, 0, 1),
    ]
    index.close()


@pytest.mark.parametrize("topic", ["T", "x" * 127, "%RETRY%" + "x" * 200, "Thema_ä"])
@pytest.mark.parametrize("born", HOSTS)
@pytest.mark.parametrize("store", HOSTS)
def test_a_record_tells_its_queue(
    tmp_path: Path, topic: str, born: tuple[str, int], store: tuple[str, int]
) -> None:
    inner = message(0, topic=topic, queue_id=3)
    inner.born_host, inner.store_host = born, store
    record = encode_record(inner, queue_offset=5, physical_offset=700, store_timestamp=NOW_MS)
    is_long = struct.unpack_from(">I", record, 4)[0] == RECORD_MAGIC_V2
    assert is_long == (len(topic) > 127)
    owner = Owner(queue_of(tmp_path, topic, 3))
    assert owner.owns(b"12345" + record, 5, 5, 700, len(record))
    assert not owner.owns(record, 0, 6, 700, len(record))
    assert not owner.owns(record, 0, 5, 701, len(record))
    assert not owner.owns(record, 0, 5, 700, len(record) - 1)
    assert not owner.owns(record[:-1], 0, 5, 700, len(record))
    assert not Owner(queue_of(tmp_path, topic, 2)).owns(record, 0, 5, 700, len(record))
    assert not Owner(queue_of(tmp_path, topic[:-1] + "Y", 3)).owns(record, 0, 5, 700, len(record))


def usual_records(topic: str = "T") -> tuple[bytes, list[Wanted]]:
    """Three consecutive records of one queue, and the request for them."""
    data, wanted = b"", []
    for logical in range(5, 8):
        offset = 700 + len(data)
        data += encode_record(
            message(logical, topic=topic, queue_id=3),
            queue_offset=logical,
            physical_offset=offset,
            store_timestamp=NOW_MS,
        )
        wanted.append((logical, offset, 700 + len(data) - offset))
    return data, wanted


def test_usual_records_are_looked_at_together(tmp_path: Path) -> None:
    data, wanted = usual_records()
    assert Owner(queue_of(tmp_path, "T", 3)).owns_all(data, 700, wanted)
    assert Owner(queue_of(tmp_path, "T", 3)).owns_all(data, 700, wanted[1:])
    assert not Owner(queue_of(tmp_path, "T", 3)).owns_all(data[:-1], 700, wanted)
    assert not Owner(queue_of(tmp_path, "T", 2)).owns_all(data, 700, wanted)
    assert not Owner(queue_of(tmp_path, "U", 3)).owns_all(data, 700, wanted)
    assert not Owner(queue_of(tmp_path, "%LMQ%T", 3)).owns_all(data, 700, wanted)
    long_one, asked = usual_records("x" * 128)
    assert not Owner(queue_of(tmp_path, "x" * 128, 3)).owns_all(long_one, 700, asked)


def test_damage_to_any_bit_means_the_same_together_as_alone(tmp_path: Path) -> None:
    data, wanted = usual_records()
    owner = Owner(queue_of(tmp_path, "T", 3))
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        alone = all(
            owner.owns(damaged, offset - 700, logical, offset, size)
            for logical, offset, size in wanted
        )
        assert owner.owns_all(damaged, 700, wanted) == alone


def test_light_queues_of_rocketmq_5_point_to_messages_of_other_topics(tmp_path: Path) -> None:
    record = encode_record(message(0), queue_offset=9, physical_offset=0, store_timestamp=NOW_MS)
    owner = Owner(queue_of(tmp_path, "%LMQ%mine"))
    assert owner.owns(record, 0, 4, 0, len(record))
    assert not owner.owns(record, 0, 4, 1, len(record))


def test_the_store_time_lies_behind_the_born_host(bench: Bench) -> None:
    result = bench.put(message(0))[0]
    record = bench.store.read_at(result.offset_physical)
    assert record is not None
    assert struct.unpack_from(">q", record, STORE_TIMESTAMP_AT) == (NOW_MS,)
    assert decode_record(record).store_timestamp == NOW_MS


@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1]),
            st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, 256, 1 << 16, 1 << 24]),
            st.integers(-(2**63), 2**63 - 1),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_looking_at_all_units_at_once_finds_every_invalid_one(
    units: list[tuple[int, int, int]],
) -> None:
    data = b"".join(UNIT.pack(*each) for each in units)
    assert _all_valid(data) == all(offset >= 0 and size > 0 for offset, size, _ in units)
