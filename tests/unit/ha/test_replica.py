"""A slave's store: equal log, queues and index after any sequence of pieces and restarts."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.message import sysflag
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store import MessageStore, PutStatus
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.files import Buffer
from tests.support.replicas import assert_equal, copy_log
from tests.support.stores import SEGMENT_BYTES, Bench, message, query, read_queue


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def master(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "master").open()


def open_slave(folder: Path, **changes: object) -> Bench:
    return Bench(folder, broker_role="SLAVE", broker_id=1, **changes).open()


def fill(master: Bench, dice: random.Random, count: int) -> None:
    """Put messages of all kinds: plain, delayed, half, committed, rolled back."""
    for number in range(count):
        inner = message(
            number,
            topic=dice.choice(("A", "B", "TopicTest")),
            queue_id=dice.randrange(3),
            body=dice.randbytes(dice.randrange(600)),
        )
        kind = dice.random()
        if kind < 0.1:
            inner.topic, inner.queue_id = SCHEDULE_TOPIC, 2
            inner.properties["DELAY"] = "3"
        elif kind < 0.3:
            inner.sys_flag = dice.choice(
                (
                    sysflag.TRANSACTION_PREPARED,
                    sysflag.TRANSACTION_COMMIT,
                    sysflag.TRANSACTION_ROLLBACK,
                )
            )
        master.put(inner)


@pytest.mark.parametrize("seed", range(6))
def test_a_slave_becomes_equal_over_restarts(tmp_path: Path, master: Bench, seed: int) -> None:
    dice = random.Random(seed)
    slave = open_slave(tmp_path / "slave")
    for _ in range(3):
        fill(master, dice, 60)
        end = master.store.max_offset_physical
        copy_log(master.store, slave.store, dice, dice.randrange(slave.store.replica.end, end))
        if dice.random() < 0.7:
            slave.store.close()
            slave = open_slave(tmp_path / "slave")
        slave.tick()
        copy_log(master.store, slave.store, dice)
        assert_equal(master.store, slave.store)
    for key in ("order-10", "customer-3"):
        found = query(slave.store, key).records
        assert found == query(master.store, key).records
    assert read_queue(slave.store) == read_queue(master.store)
    slave.store.close()
    reopened = Bench(tmp_path / "slave").open()
    assert_equal(master.store, reopened.store)
    reopened.put(message(1))


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_slave_ends_with_a_record(tmp_path: Path, master: Bench, seed: int) -> None:
    """The last write of a killed process may be torn: the slave then asks for the record again."""
    dice = random.Random(seed)
    fill(master, dice, 50)
    slave = open_slave(tmp_path / "slave")
    copy_log(master.store, slave.store, dice)
    end, last = slave.store.replica.end, slave.store.replica.last_record
    log = slave.store._log
    torn = dice.randrange(last, end)
    # Not closed: as after kill -9, nothing but the written bytes is left.
    with log.path_of(last).open("r+b") as file:
        file.seek(torn % SEGMENT_BYTES)
        file.write(bytes(end - torn))
    slave.store._locks.release()  # type: ignore[union-attr]
    slave = open_slave(tmp_path / "slave")
    assert slave.store.replica.end == last
    copy_log(master.store, slave.store, dice)
    assert_equal(master.store, slave.store)


@pytest.mark.parametrize("later", [1, 2], ids=["prepared", "absent"])
def test_an_empty_slave_begins_at_a_later_segment(
    tmp_path: Path, master: Bench, later: int
) -> None:
    dice = random.Random(5)
    fill(master, dice, 200)
    start = later * SEGMENT_BYTES
    slave = open_slave(tmp_path / "slave")
    for _ in range(4):
        slave.tick()
        slave.run_io()
    assert (tmp_path / "slave" / "commitlog" / f"{SEGMENT_BYTES:020d}").exists(), "no preallocation"
    slave.store.replica.begin_at(start)
    assert [each.name for each in (tmp_path / "slave" / "commitlog").iterdir()] == [f"{start:020d}"]
    slave.store.close()
    slave = open_slave(tmp_path / "slave")
    assert (slave.store.replica.end, slave.store.replica.is_empty) == (start, True)
    copy_log(master.store, slave.store, dice)
    assert_equal(master.store, slave.store)
    slave.run_io()
    slave.tick()
    slave.store.close()
    slave = open_slave(tmp_path / "slave")
    assert slave.store.min_offset_physical == start
    assert_equal(master.store, slave.store)


def test_a_topic_created_again_begins_again_on_the_slave(tmp_path: Path, master: Bench) -> None:
    dice = random.Random(6)
    master.put_many(40)
    slave = open_slave(tmp_path / "slave")
    copy_log(master.store, slave.store, dice)
    slave.tick(60_000)
    master.store.delete_topic("TopicTest")
    for _ in range(2):
        master.put(message(1, body=b"new"))
        copy_log(master.store, slave.store, dice)
        assert_equal(master.store, slave.store)


def test_listeners_hear_of_replicated_messages(tmp_path: Path, master: Bench) -> None:
    slave = open_slave(tmp_path / "slave")
    heard: list[tuple[str, int, int, int, int]] = []

    def hear(
        topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        heard.append((topic, queue_id, first, end, len(codes())))

    slave.store.arrival_listeners.append(ArrivalListener({"A"}, hear))
    master.put(message(1, topic="A"), message(2, topic="B"), message(3, topic="A"))
    copy_log(master.store, slave.store, random.Random(0), None)
    assert sum(end - first for _, _, first, end, _ in heard) == 2
    assert {each[:2] for each in heard} == {("A", 0)}
    assert heard[-1][3] == 2
    assert all(count == end - first for _, _, first, end, count in heard)


def refuses_puts(store: MessageStore) -> None:
    assert not store.writable
    assert store.read_only_reason is None
    assert store.put(message(1)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.put_batch([message(1)])[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.fast_writes.capacity_bytes() == 0


def test_a_slave_stores_no_message_of_its_own(tmp_path: Path, master: Bench) -> None:
    slave = open_slave(tmp_path / "slave")
    refuses_puts(slave.store)
    master.put_many(3)
    copy_log(master.store, slave.store, random.Random(0))
    refuses_puts(slave.store)
    assert_equal(master.store, slave.store)


def test_a_failed_write_stores_nothing(tmp_path: Path, master: Bench) -> None:
    slave = open_slave(tmp_path / "slave")
    master.put_many(5)
    copy_log(master.store, slave.store, random.Random(0))
    end = slave.store.replica.end
    master.put_many(5, first=5)

    def fail(data: Buffer, offset: int) -> None:
        raise OSError(5, "Input/output error")

    slave.store._log.active.write = fail  # type: ignore[method-assign]
    with pytest.raises(StoreReadOnly):
        copy_log(master.store, slave.store, random.Random(0))
    assert slave.store.replica.end == end
    assert slave.store.queue_range("TopicTest", 0) == (0, 5)
