"""The confirm offset: what readers see, and what a restart keeps."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.message.record import decode_record
from core_broker.store import GetStatus
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.visibility import BUCKETS_MAX
from tests.support.replicas import copy_log
from tests.support.stores import Bench, message, query


class Listener:
    """Records the arrivals of one topic."""

    def __init__(self, bench: Bench) -> None:
        self.heard: list[tuple[int, int, int]] = []
        listener = ArrivalListener({"T"}, self._hear)
        bench.store.arrival_listeners.append(listener)

    def _hear(
        self, topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        assert len(codes()) == end - first
        self.heard.append((queue_id, first, end))


def fill(bench: Bench, first: int, count: int) -> list[int]:
    """Put messages into two queues; return the end of the log behind each."""
    ends = []
    for number in range(first, first + count):
        bench.put(message(number, topic="T", queue_id=number % 2, body=bytes(100)))
        ends.append(bench.store.max_offset_physical)
    return ends


def test_readers_see_confirmed_messages_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    listener = Listener(bench)
    fill(bench, 0, 2)
    gate = bench.store.gate
    gate.confirm(bench.store.max_offset_physical)
    gate.close()
    ends = fill(bench, 2, 4)
    assert bench.store.queue_range("T", 0) == (0, 1)
    assert bench.store.get("T", 0, 1, 10).status is GetStatus.OFFSET_OVERFLOW_ONE
    assert listener.heard == [(0, 0, 1), (1, 0, 1)]

    gate.confirm(ends[0] - 1)
    assert bench.store.queue_range("T", 0) == (0, 1)
    gate.confirm(ends[1])
    assert listener.heard[2:] == [(0, 1, 2), (1, 1, 2)]
    assert len(bench.store.get("T", 0, 1, 10).records) == 1
    gate.confirm(ends[0])
    assert gate.confirmed == ends[1], "it never decreases"

    gate.open()
    assert listener.heard[4:] == [(0, 2, 3), (1, 2, 3)]
    fill(bench, 6, 1)
    assert listener.heard[6:] == [(0, 3, 4)]
    bench.store.close()


@pytest.mark.parametrize("confirmed", [0, 2])
def test_a_consumer_keeps_its_place_while_its_messages_are_hidden(
    tmp_path: Path, confirmed: int
) -> None:
    """The saved confirm offset is older than the messages that consumers got before a restart."""
    bench = Bench(tmp_path).open()
    ends = fill(bench, 0, 8)
    gate = bench.store.gate
    gate.confirm(ends[confirmed - 1] if confirmed else 0)
    gate.close()
    shown = confirmed // 2
    assert bench.store.queue_range("T", 0) == (0, shown)
    for offset in range(shown + 1, 5):
        result = bench.store.get("T", 0, offset, 10)
        assert (result.status, result.next_offset) == (GetStatus.OFFSET_OVERFLOW_ONE, offset)
    assert bench.store.get("T", 0, 5, 10).next_offset == shown, "an offset behind all messages"
    gate.open()
    assert len(bench.store.get("T", 0, 3, 10).records) == 1
    bench.store.close()


def test_a_search_by_key_finds_confirmed_messages_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    ends = []
    for number in range(4):
        keys = {"KEYS": "k", "UNIQ_KEY": f"U{number}"}
        bench.put(message(number, topic="T", body=b"%d" % number, properties=keys))
        ends.append(bench.store.max_offset_physical)
    gate = bench.store.gate
    gate.confirm(ends[1])
    gate.close()
    assert bodies_of(bench, 64) == [b"0", b"1"]
    assert bodies_of(bench, 1) == [b"1"], "hidden messages count for no limit"
    assert (gate.shows(ends[1]), gate.shows(ends[1] + 1)) == (True, False)
    gate.confirm(ends[2])
    assert bodies_of(bench, 64) == [b"0", b"1", b"2"]
    gate.confirm(ends[3] - 1)
    assert bodies_of(bench, 64) == [b"0", b"1", b"2"]
    gate.open()
    assert bodies_of(bench, 64) == [b"0", b"1", b"2", b"3"]
    bench.store.close()


def bodies_of(bench: Bench, count: int) -> list[bytes]:
    found = query(bench.store, "k", count, topic="T")
    return [decode_record(each).body for each in found.records]


def test_the_confirm_offset_ends_with_the_log(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    end = fill(bench, 0, 1)[-1]
    bench.store.gate.confirm(end + 1000)
    assert bench.store.gate.confirmed == end
    bench.store.close()


def test_a_restart_hides_what_was_not_confirmed(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.store.gate.close()
    ends = fill(bench, 0, 6)
    bench.store.gate.confirm(ends[2])
    bench.store.close()
    again = Bench(tmp_path)
    again.store.load()
    assert again.store.gate.confirmed == ends[2]
    assert again.store.queue_range("T", 0) == (0, 3)
    again.store.gate.close()
    assert again.store.queue_range("T", 0) == (0, 2)
    assert again.store.queue_range("T", 1) == (0, 1)
    again.store.gate.confirm(ends[5])
    assert again.store.queue_range("T", 1) == (0, 3)
    again.store.close()


def test_hidden_messages_have_their_offsets(tmp_path: Path) -> None:
    """A put behind hidden messages gets the next offset, and units reach the files."""
    bench = Bench(tmp_path).open()
    bench.store.gate.close()
    fill(bench, 0, 2 * (BUCKETS_MAX + 50))
    (stored,) = bench.put(message(0, topic="T", queue_id=0))
    assert stored.offset_logical == BUCKETS_MAX + 50
    bench.store.close()
    again = Bench(tmp_path).open()
    assert again.store.queue_range("T", 0) == (0, BUCKETS_MAX + 51)
    again.store.close()


def test_a_slave_shows_what_its_master_has_confirmed(tmp_path: Path) -> None:
    master = Bench(tmp_path / "master").open()
    ends = fill(master, 0, 40)
    slave = Bench(tmp_path / "slave", broker_role="SLAVE", broker_id=1).open()
    slave.store.gate.close()
    listener = Listener(slave)
    copy_log(master.store, slave.store, random.Random(1))
    assert slave.store.queue_range("T", 0) == (0, 0)
    slave.store.gate.confirm(ends[39])
    assert slave.store.queue_range("T", 1) == (0, 20)
    assert [each for each in listener.heard if each[0] == 1][-1][2] == 20
    master.store.close()
    slave.store.close()
