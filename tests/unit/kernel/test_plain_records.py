"""Queues, index and arrivals of a slave are equal with the compiled scan and in Python."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from core_broker.fastpath import has_kernel
from core_broker.ha.faults import DamagedStream
from core_broker.ha.record_stream import RecordStream
from core_broker.message import sysflag
from core_broker.message.record import encode_record
from core_broker.message.record_layout import BLANK_BYTES, BLANK_MAGIC, RECORD_BYTES_MIN
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.plain_records import PlainRecords, PlainRecordScan
from tests.support.replicas import feed
from tests.support.stores import NOW_MS, SEGMENT_BYTES, Bench, message

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

LONG_TOPIC = "L" * 200
TOPICS = ("A", "A", "A", "TopicTest", "B", "主题", SCHEDULE_TOPIC, LONG_TOPIC)
#: Properties as clients send them, and as a careless client may.
PROPERTIES: tuple[dict[str, str], ...] = (
    {"TAGS": "TagA", "KEYS": "one two  three ", "UNIQ_KEY": "7F00000100002A9F00000000000000AA"},
    {"TAGS": "TagA"},
    {"KEYS": "k"},
    {},
    {"TAGS": "标签", "KEYS": "ascii"},
    {"KEYS": "钥匙"},
    {"note": "备注", "TAGS": "x||y"},
    {"KEYS": "first\x02KEYS\x01second\x02KEYS\x01"},
    {"a": "b\x02\x01c\x02d\x01\x02TAGS\x01\x01odd\x02UNIQ_KEY\x01u"},
    {"DELAY": "3", "TAGS": "t"},
    {"TAGS": "t" * 400},
    {"KEYS": " ".join(str(number) for number in range(700))},
)
KINDS = (
    sysflag.TRANSACTION_PREPARED,
    sysflag.TRANSACTION_COMMIT,
    sysflag.TRANSACTION_ROLLBACK,
    sysflag.COMPRESSED,
)


def random_log(dice: random.Random, count: int) -> bytes:
    """Records of all kinds; some queues leave offsets out, begin again, or repeat an offset."""
    log = bytearray()
    ends: dict[tuple[str, int], int] = {}
    for number in range(count):
        key = (dice.choice(TOPICS), dice.randrange(2))
        inner = message(
            number,
            topic=key[0],
            queue_id=key[1],
            body=dice.randbytes(dice.randrange(200)),
            properties=dice.choice(PROPERTIES),
        )
        if dice.random() < 0.2:
            inner.sys_flag = dice.choice(KINDS)
        if dice.random() < 0.1:
            inner.born_host = ("2001:db8::1", 40_000)
        offset = ends.get(key, dice.choice((0, 0, 0, 7)))
        if dice.random() < 0.05:
            offset = max(offset + dice.choice((-1, 1, 3, -offset)), 0)
        # A message cannot have more messages before it than fit into the log.
        offset = min(offset, len(log) // RECORD_BYTES_MIN)
        ends[key] = offset + 1
        places = {"queue_offset": offset, "store_timestamp": NOW_MS + number}
        record = encode_record(inner, physical_offset=len(log), **places)
        left = SEGMENT_BYTES - len(log) % SEGMENT_BYTES
        if len(record) > left - BLANK_BYTES:
            log += pack(">II", left, BLANK_MAGIC) + bytes(left - BLANK_BYTES)
            record = encode_record(inner, physical_offset=len(log), **places)
        log += record
    return bytes(log)


Heard = list[tuple[str, int, int, int, list[int]]]


class Copying:
    """One slave that copies a log on one of both paths."""

    def __init__(self, folder: Path, *, is_compiled: bool) -> None:
        self.folder = folder
        self.is_compiled = is_compiled
        self.heard: Heard = []
        self.begin()

    def begin(self) -> None:
        """Open the store, and go on at its end."""
        self.bench = Bench(self.folder, broker_role="SLAVE", broker_id=1).open()
        self.bench.store.arrival_listeners.append(ArrivalListener(("A", "主题"), self._hear))
        replica = self.bench.store.replica
        self.stream = RecordStream(replica.end, replica.segment_size, is_compiled=self.is_compiled)

    def _hear(
        self, topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        self.heard.append((topic, queue_id, first, end, codes()))

    def take(self, data: bytes) -> str:
        """Take received bytes; return the reason for a refusal."""
        try:
            feed(self.bench.store, self.stream, data)
        except DamagedStream as error:
            return str(error)
        return ""

    def files(self) -> dict[str, bytes]:
        """Close the store; return log, queues and index."""
        self.bench.store.close()
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for name in ("commitlog", "consumequeue", "index")
            for path in sorted((self.folder / name).rglob("*"))
            if path.is_file()
        }


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def copied_by_both(folder: Path, log: bytes, dice: random.Random, *, restarts: bool) -> list[str]:
    """Copy a log on both paths in the same pieces; return the refusals."""
    both = [Copying(folder / str(each), is_compiled=each) for each in (True, False)]
    at, refusals = 0, [""]
    while at < len(log) and refusals == [""]:
        size = dice.choice((1, 60, 500, 4_000, 40_000))
        refusals = list({each.take(log[at : at + size]) for each in both})
        at += size
        assert both[0].bench.store.replica.end == both[1].bench.store.replica.end
        if restarts and dice.random() < 0.05:
            at = both[0].bench.store.replica.end
            for each in both:
                each.bench.store.close()
                each.begin()
    assert both[0].heard == both[1].heard
    assert both[0].bench.store.replica.last_record == both[1].bench.store.replica.last_record
    compiled, interpreted = (each.files() for each in both)
    assert compiled.keys() == interpreted.keys()
    for name, content in compiled.items():
        assert content == interpreted[name], name
    return refusals


@pytest.mark.parametrize("seed", range(12))
def test_both_enter_the_same_records(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = random_log(dice, 150)
    assert copied_by_both(tmp_path, log, dice, restarts=seed % 2 == 0) == [""]


@pytest.mark.parametrize("seed", range(25))
def test_both_refuse_the_same_damage(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = bytearray(random_log(dice, 60))
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(log))
        log[at] ^= 1 << dice.randrange(8)
    assert len(copied_by_both(tmp_path, bytes(log), dice, restarts=False)) == 1


def test_common_records_are_plain() -> None:
    """The scan does take the common records: equality alone would hold with no plain record."""
    log, starts = bytearray(), []
    for number in range(100):
        starts.append(len(log))
        log += encode_record(
            message(number, queue_id=number % 4),
            queue_offset=number // 4,
            physical_offset=len(log),
            store_timestamp=NOW_MS + number,
        )
    plain = PlainRecordScan().find(bytes(log) + b"\0\0\0", 0, 0, 1 << 20)
    assert plain is not None
    assert (plain.size, plain.newest, len(plain.runs)) == (len(log), starts[-1], 4)
    assert len(list(plain.records())) == 100
    assert plain.store_timestamp == NOW_MS + 99
    # An incomplete last record, and the end of the segment, end the plain records before.
    for cut, left in ((len(log) - 1, 1 << 20), (len(log), len(log) + BLANK_BYTES - 1)):
        plain = PlainRecordScan().find(bytes(log[:cut]), 0, 0, left)
        assert plain is not None
        assert plain.size == starts[-1]
    assert PlainRecordScan(is_compiled=False).find(bytes(log), 0, 0, 1 << 20) is None


@pytest.mark.parametrize("count", [1023, 1024, 1025, 3000])
def test_a_piece_has_a_limit_of_records_and_queues(count: int) -> None:
    """As many records and queues as one call takes, and more."""
    log = bytearray()
    for number in range(count):
        log += encode_record(
            message(number, queue_id=number % 300, body=b"", properties={"KEYS": "a b c d e f"}),
            queue_offset=number // 300,
            physical_offset=len(log),
            store_timestamp=NOW_MS,
        )
    data = bytes(log)
    parts = [part for each in RecordStream(0, 1 << 20).feed(data) for part in each.records]
    assert len(parts) > 1
    plain = [part for part in parts if isinstance(part, PlainRecords)]
    assert max(len(part.runs) for part in plain) == 256
    found = [record for part in plain for record in part.records()]
    found += [part for part in parts if not isinstance(part, PlainRecords)]
    (whole,) = RecordStream(0, 1 << 20, is_compiled=False).feed(data)
    assert sorted(found) == whole.records
