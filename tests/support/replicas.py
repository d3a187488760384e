"""Copies of a commit log without a network, and comparisons of two stores."""

import random
from collections.abc import Iterable
from functools import partial

from core_broker.ha.record_stream import RecordStream, Stretch
from core_broker.store import MessageStore
from core_broker.store.log_scan import LogRecord
from core_broker.store.plain_records import PlainRecords
from tests.support.stores import warmed


def log_bytes(store: MessageStore, start: int, end: int | None = None) -> bytes:
    """The bytes of the commit log in a range."""
    log = store._log
    end = log.written if end is None else end
    parts = []
    while start < end:
        part = warmed(store, partial(log.read, start, end - start))
        assert part
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def records_of(stretches: Iterable[Stretch]) -> list[LogRecord]:
    """All records, one by one."""
    records: list[LogRecord] = []
    for stretch in stretches:
        for part in stretch.records:
            records += part.records() if isinstance(part, PlainRecords) else [part]
    return records


def feed(slave: MessageStore, stream: RecordStream, data: bytes) -> None:
    """Write the records that the bytes complete."""
    for stretch in stream.feed(data):
        assert stretch.offset == slave.replica.end
        if stretch.records:
            slave.replica.append(stretch.data, stretch.records)
        else:
            slave.replica.end_segment(stretch.data)


def copy_log(
    master: MessageStore,
    slave: MessageStore,
    dice: random.Random,
    end: int | None = None,
    *,
    is_compiled: bool = True,
) -> None:
    """Copy the log up to `end` in pieces of random sizes, as if packets were cut anywhere."""
    replica = slave.replica
    stream = RecordStream(replica.end, replica.segment_size, is_compiled=is_compiled)
    data, at = log_bytes(master, replica.end, end), 0
    while at < len(data):
        size = dice.choice((1, 7, 100, 1_000, 40_000))
        feed(slave, stream, data[at : at + size])
        at += size


def assert_equal(master: MessageStore, slave: MessageStore) -> None:
    """Compare log, queues and the answers of the index of two stores."""
    start = slave.min_offset_physical
    assert slave.max_offset_physical == master.max_offset_physical
    assert log_bytes(slave, start) == log_bytes(master, start)
    assert sorted(slave.topics_on_disk()) == sorted(master.topics_on_disk())
    for queue in master._queues:
        key = (queue.topic, queue.queue_id)
        first, end = slave.queue_range(*key)
        assert end == queue.max_offset, key
        units = partial(slave.queue_units, *key, first, end - first)
        own = partial(master.queue_units, *key, first, end - first)
        assert warmed(slave, units) == warmed(master, own), key
