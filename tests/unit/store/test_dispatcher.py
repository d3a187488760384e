"""Dispatching records from the log: once each, in order, with the right code."""

from pathlib import Path

import pytest

from core_broker.message import sysflag
from core_broker.message.hashing import tags_code
from core_broker.message.properties import encode_properties
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.consume_queues import ConsumeQueues
from core_broker.store.dispatcher import Dispatcher
from core_broker.store.files import DiskFiles
from core_broker.store.key_hash import KeyHasher
from core_broker.store.key_index import KeyIndex
from core_broker.store.log_scan import LogRecord, LogScan
from core_broker.store.segments import OpenFiles
from tests.support.stores import NOW_MS, Bench, message

FOREVER = (0, 1 << 62, 64)


class Parts:
    """A dispatcher with its queues and index."""

    def __init__(self, root: Path, *, is_indexing: bool = True) -> None:
        self.files = files = DiskFiles()
        self.queues = ConsumeQueues(files, root / "consumequeue", 400, OpenFiles(files, 4))
        self.index = KeyIndex(files, root / "index", 16, 100)
        self.dispatcher = Dispatcher(
            self.queues, self.index, KeyHasher(), (1_000, 5_000), is_indexing=is_indexing
        )

    def dispatch(
        self,
        number: int,
        *,
        queue_offset: int | None = None,
        topic: str = "T",
        flag: int = 0,
        **properties: str,
    ) -> None:
        offset = number if queue_offset is None else queue_offset
        encoded = encode_properties(properties or {"TAGS": "A", "KEYS": "k"})
        record = LogRecord(number * 100, 100, 0, offset, flag, NOW_MS, topic, encoded)
        self.dispatcher.dispatch(record)
        self.dispatcher.settle()

    def found(self, key: str = "k") -> list[int]:
        search = self.index.search(KeyHasher().key_hash("T", key), *FOREVER)
        search.run(self.files)
        return search.offsets


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def test_a_record_that_was_dispatched_is_passed_over(parts: Parts) -> None:
    for number in (0, 1, 2, 0, 1, 2, 3):
        parts.dispatch(number)
    queue = parts.queues.get("T", 0)
    assert queue is not None
    assert [each.offset_physical for each in queue.units(0, 99)] == [0, 100, 200, 300]
    assert parts.found() == [300, 200, 100, 0]


@pytest.mark.parametrize(
    ("flag", "is_queued", "is_indexed"),
    [
        (sysflag.TRANSACTION_NONE, True, True),
        (sysflag.TRANSACTION_COMMIT, True, True),
        (sysflag.TRANSACTION_PREPARED, False, True),
        (sysflag.TRANSACTION_ROLLBACK, False, False),
    ],
)
def test_transactions_are_seen_when_committed(
    parts: Parts, flag: int, is_queued: bool, is_indexed: bool
) -> None:
    parts.dispatch(0, flag=flag)
    assert (parts.queues.get("T", 0) is not None) is is_queued
    assert bool(parts.found()) is is_indexed


def code_of(parts: Parts, topic: str) -> int:
    queue = parts.queues.get(topic, 0)
    assert queue is not None
    unit = queue.unit(queue.max_offset - 1)
    assert unit is not None
    return unit.tags_code


def test_the_code_is_the_hash_of_the_tags(parts: Parts) -> None:
    parts.dispatch(0, TAGS="TagA")
    assert code_of(parts, "T") == tags_code("TagA") == 2598919
    parts.dispatch(1, KEYS="k")
    assert code_of(parts, "T") == 0


@pytest.mark.parametrize(
    ("level", "code"),
    [("1", NOW_MS + 1_000), ("2", NOW_MS + 5_000), ("9", NOW_MS + 5_000), ("0", 65), ("x", 65)],
)
def test_delayed_messages_have_their_time_of_delivery(parts: Parts, level: str, code: int) -> None:
    parts.dispatch(0, topic=SCHEDULE_TOPIC, DELAY=level, TAGS="A")
    assert code_of(parts, SCHEDULE_TOPIC) == code


def test_a_delay_counts_in_that_topic_only(parts: Parts) -> None:
    parts.dispatch(0, DELAY="1", TAGS="A")
    assert code_of(parts, "T") == 65


def test_a_gap_is_noted_and_offsets_stay_those_of_the_records(parts: Parts) -> None:
    parts.dispatch(0)
    parts.dispatch(5)
    parts.dispatch(6)
    queue = parts.queues.get("T", 0)
    assert queue is not None
    assert queue.max_offset == 7
    assert parts.dispatcher.gaps == {("T", 0)}


def test_the_last_message_of_a_queue_may_follow_a_gap_that_has_room_for_what_is_missing(
    parts: Parts,
) -> None:
    parts.dispatch(0)
    parts.dispatch(5)
    queue = parts.queues.get("T", 0)
    assert queue is not None
    assert queue.max_offset == 1  # unconfirmed
    parts.dispatcher.decide_doubtful()
    assert queue.max_offset == 6


@pytest.mark.parametrize("damaged", [3, 100, 9 << 40])
def test_one_damaged_offset_hides_no_other_message(
    parts: Parts, damaged: int, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(30):
        parts.dispatch(number, queue_offset=damaged if number == 10 else None)
    parts.dispatcher.decide_doubtful()
    queue = parts.queues.get("T", 0)
    assert queue is not None
    places = [each.offset_physical for each in queue.units(0, 99) if each.size == 100]
    assert places == [number * 100 for number in range(30) if number != 10]
    assert f"The record at 1000 cannot be message {damaged} of queue 0" in caplog.text


def places_of(parts: Parts) -> dict[int, int]:
    """Queue offset → physical offset, without gaps."""
    queue = parts.queues.get("T", 0)
    assert queue is not None
    units = enumerate(queue.units(0, 99))
    return {offset: unit.offset_physical for offset, unit in units if unit.size == 100}


def test_damage_explains_a_gap_only_where_it_lies(parts: Parts) -> None:
    parts.dispatcher.lost(0, 1000)
    parts.dispatch(10, queue_offset=0)
    parts.dispatch(11, queue_offset=3)
    assert places_of(parts) == {0: 1000}  # unexplained and unconfirmed
    parts.dispatcher.lost(1200, 1500)
    parts.dispatch(15, queue_offset=5)
    assert places_of(parts) == {0: 1000, 3: 1100, 5: 1500}


def test_a_gap_and_a_wrong_offset_behind_it(parts: Parts) -> None:
    """The damaged record repeats the offset of the record before."""
    parts.dispatch(0)
    parts.dispatcher.lost(100, 200)
    parts.dispatch(2)
    parts.dispatch(3, queue_offset=2)
    parts.dispatch(4)
    parts.dispatch(5)
    assert places_of(parts) == {0: 0, 2: 200, 4: 400, 5: 500}


def test_several_wrong_offsets_in_a_row_have_their_places(parts: Parts) -> None:
    for number, told in enumerate([0, 64, 2 + 128, 3 + 256, 4, 5]):
        parts.dispatch(number, queue_offset=told)
    assert places_of(parts) == {0: 0, 4: 400, 5: 500}


def test_a_damaged_offset_of_the_last_message_takes_no_memory(parts: Parts) -> None:
    parts.dispatch(0)
    parts.dispatch(1, queue_offset=9 << 40)
    parts.dispatcher.decide_doubtful()
    queue = parts.queues.get("T", 0)
    assert queue is not None
    assert (queue.max_offset, queue.tail_bytes) == (1, 20)


def test_offsets_that_begin_anew_are_those_of_a_topic_created_again(parts: Parts) -> None:
    for number in range(5):
        parts.dispatch(number)
    parts.dispatch(7, queue_offset=0)
    parts.dispatch(8, queue_offset=1)
    queue = parts.queues.get("T", 0)
    assert queue is not None
    assert [each.offset_physical for each in queue.units(0, 99)] == [700, 800]


def test_without_indexing_no_index_is_made(tmp_path: Path) -> None:
    parts = Parts(tmp_path, is_indexing=False)
    parts.dispatch(0)
    assert not (tmp_path / "index").exists()


def test_putting_and_dispatching_build_the_same_files(tmp_path: Path) -> None:
    put = Bench(tmp_path / "put").open()
    for number in range(100):
        inner = message(number, queue_id=number % 3)
        if number % 10 == 0:
            inner = message(number, topic=SCHEDULE_TOPIC, properties={"DELAY": "3", "KEYS": "a b"})
        put.put(inner)
    put.store.close()
    (tmp_path / "rebuilt").mkdir()
    (tmp_path / "put" / "commitlog").rename(tmp_path / "rebuilt" / "commitlog")
    Bench(tmp_path / "rebuilt").open().store.close()
    for folder in ("consumequeue", "index"):
        expected = [each for each in (tmp_path / "put" / folder).rglob("*") if each.is_file()]
        assert expected
        for path in expected:
            twin = tmp_path / "rebuilt" / path.relative_to(tmp_path / "put")
            assert twin.read_bytes() == path.read_bytes(), path


def test_a_dispatcher_that_lags_catches_up_from_any_place(tmp_path: Path) -> None:
    source = Bench(tmp_path / "source", mapped_file_size_commit_log=64 * 1024).open()
    source.put(*(message(number, queue_id=number % 3) for number in range(60)))
    records = list(LogScan(source.store._log, 0, check_crc=True))
    assert len(records) == 60
    contents = []
    for name, runs in (("at once", [(0, 60)]), ("late", [(0, 20), (10, 30), (5, 6), (0, 60)])):
        parts = Parts(tmp_path / name)
        for start, end in runs:
            for each in records[start:end]:
                parts.dispatcher.dispatch(each)
            parts.dispatcher.settle()
        parts.queues.write_tails()
        for flush in parts.index.take_flushes():
            flush.run()
        files = sorted(each for each in (tmp_path / name).rglob("*") if each.is_file())
        contents.append([(each.relative_to(tmp_path / name), each.read_bytes()) for each in files])
    assert len(contents[0]) > 3
    assert contents[0] == contents[1]
    source.store.close()


def test_a_queue_that_seemed_to_begin_too_late_begins_where_the_others_say(parts: Parts) -> None:
    for number in range(10, 40):
        parts.dispatch(number, queue_offset=74 if number == 10 else number)
    parts.dispatcher.decide_doubtful()
    parts.queues.write_tails()
    queue = parts.queues.get("T", 0)
    assert queue is not None
    queue.load()
    places = [each.offset_physical for each in queue.units(0, 99) if each.size == 100]
    assert places == [number * 100 for number in range(11, 40)]
