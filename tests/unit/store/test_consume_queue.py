"""Consume queues: units, files, blanks, searching, cutting."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.store.consume_queue import MAKING_COST, ConsumeQueue
from core_broker.store.consume_queues import ArrivalListener, ConsumeQueues, is_folder_name
from core_broker.store.files import DiskFiles
from core_broker.store.results import QueueUnit
from core_broker.store.segments import OpenFiles
from core_broker.store.unit_layout import BLANK_SIZE

FILES = DiskFiles()
PER_FILE = 10
FILE_BYTES = PER_FILE * 20


def new_queue(root: Path) -> ConsumeQueue:
    return ConsumeQueue(FILES, OpenFiles(FILES, 4), root / "T" / "3", FILE_BYTES, {})


def filled(root: Path, count: int) -> ConsumeQueue:
    """A queue with message n at physical offset 100 * n, 90 bytes long."""
    queue = new_queue(root)
    for number in range(count):
        queue.append(100 * number, 90, number)
    queue.publish()
    queue.write_tail()
    return queue


def reloaded(root: Path) -> ConsumeQueue:
    queue = new_queue(root)
    queue.load()
    return queue


def test_a_unit_is_offset_size_and_tags_code(tmp_path: Path) -> None:
    queue = new_queue(tmp_path)
    queue.append(0x1122334455, 129, 2598919)  # the code of "TagA"
    queue.append(0x1122334455 + 129, 10, -5)
    queue.publish()
    queue.write_tail()
    data = (tmp_path / "T" / "3" / "00000000000000000000").read_bytes()
    assert len(data) == FILE_BYTES
    assert data[:20] == bytes.fromhex("0000001122334455 00000081 000000000027a807")
    assert data[20:40] == bytes.fromhex("00000011223344d6 0000000a fffffffffffffffb")


def test_units_are_read_across_files_and_memory(tmp_path: Path) -> None:
    queue = filled(tmp_path, 25)
    queue.append(2500, 90, 25)
    queue.publish()
    assert [each.tags_code for each in queue.units(0, 100)] == list(range(26))
    assert [each.tags_code for each in queue.units(9, 2)] == [9, 10]
    assert queue.unit(25) == QueueUnit(2500, 90, 25)
    assert queue.unit(26) is None
    names = sorted(each.name for each in (tmp_path / "T" / "3").iterdir())
    assert names == [f"{start:020d}" for start in (0, 200, 400)]


def test_unpublished_units_are_not_seen_and_can_be_taken_back(tmp_path: Path) -> None:
    queue = filled(tmp_path, 3)
    queue.append(300, 90, 3)
    queue.append(400, 90, 4)
    assert (queue.max_offset, queue.next_offset, queue.unit(3)) == (3, 5, None)
    queue.rollback()
    assert queue.next_offset == 3
    queue.append(300, 80, 33)
    queue.publish()
    assert queue.unit(3) == QueueUnit(300, 80, 33)
    assert queue.end_physical == 380


def test_a_queue_that_begins_late_has_blanks_before(tmp_path: Path) -> None:
    queue = new_queue(tmp_path)
    queue.start_at(14)
    queue.append(5000, 90, 1)
    queue.publish()
    queue.write_tail()
    data = (tmp_path / "T" / "3" / "00000000000000000200").read_bytes()
    assert data[:80] == bytes.fromhex("0000000000000000 7fffffff 0000000000000000") * 4
    assert (queue.min_offset, queue.max_offset) == (14, 15)
    again = reloaded(tmp_path)
    again.advance_min(0)
    assert (again.min_offset, again.max_offset, again.end_physical) == (14, 15, 5090)


def test_a_gap_keeps_offsets_rising(tmp_path: Path) -> None:
    queue = filled(tmp_path, 3)
    queue.start_at(6)
    queue.append(600, 90, 6)
    queue.publish()
    assert queue.unit(4) == QueueUnit(290, BLANK_SIZE, 0)
    assert queue.first_not_before(600, 0, queue.max_offset) == 6


@pytest.mark.parametrize(
    ("physical", "first"),
    [(0, 0), (1, 1), (100, 1), (1950, 20), (2400, 24), (2401, 25), (9999, 25)],
)
def test_the_first_unit_behind_an_offset_is_found(
    tmp_path: Path, physical: int, first: int
) -> None:
    queue = filled(tmp_path, 25)
    assert queue.first_not_before(physical, 0, queue.max_offset) == first


def test_loading_ends_at_the_last_valid_unit(tmp_path: Path) -> None:
    filled(tmp_path, 23)
    queue = reloaded(tmp_path)
    assert (queue.min_offset, queue.max_offset, queue.end_physical) == (0, 23, 2290)
    queue.append(2300, 90, 23)
    queue.publish()
    queue.write_tail()
    assert reloaded(tmp_path).max_offset == 24


@pytest.mark.parametrize("offset", [0, 5, 10, 17, 24])
def test_a_cut_is_seen_by_the_next_start(tmp_path: Path, offset: int) -> None:
    queue = filled(tmp_path, 25)
    queue.cut(offset)
    assert (queue.next_offset, queue.max_offset) == (offset, offset)
    queue.append(7777, 90, 1)
    queue.publish()
    queue.write_tail()
    again = reloaded(tmp_path)
    assert again.max_offset == offset + 1
    assert again.unit(offset) == QueueUnit(7777, 90, 1)


def test_a_cut_by_the_log_drops_what_lies_behind(tmp_path: Path) -> None:
    queue = filled(tmp_path, 25)
    queue.cut_physical(1250)
    assert (queue.max_offset, queue.end_physical) == (13, 1290)
    queue.cut_physical(5000)
    assert queue.max_offset == 13


def test_old_files_go_when_the_log_has_moved_on(tmp_path: Path) -> None:
    queue = filled(tmp_path, 25)
    queue.advance_min(1500)
    assert queue.min_offset == 15
    assert queue.removable() == [0]
    queue.advance_min(9999)
    assert queue.removable() == [0, 10]  # never the last
    assert [queue.forget(each).name[-3:] for each in (0, 10)] == ["000", "200"]
    assert queue.unit(5) is None


def test_a_file_with_zeros_before_a_full_one_is_damage(tmp_path: Path) -> None:
    filled(tmp_path, 25)
    (tmp_path / "T" / "3" / "00000000000000000000").write_bytes(bytes(FILE_BYTES))
    with pytest.raises(StoreCorrupt, match="not full"):
        reloaded(tmp_path)


def no_space(*arguments: object) -> None:
    raise OSError("no space")


def test_units_in_memory_wait_for_a_disk_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = new_queue(tmp_path)
    queue.append(0, 90, 7)
    queue.publish()
    with monkeypatch.context() as broken:
        broken.setattr(DiskFiles, "make_dir", no_space)
        with pytest.raises(OSError, match="no space"):
            queue.write_tail()
    assert queue.unit(0) == QueueUnit(0, 90, 7)
    queue.write_tail()
    assert reloaded(tmp_path).unit(0) == QueueUnit(0, 90, 7)


def table(root: Path) -> ConsumeQueues:
    return ConsumeQueues(FILES, root, FILE_BYTES, OpenFiles(FILES, 4))


def test_listeners_hear_of_each_queue_once(tmp_path: Path) -> None:
    queues = table(tmp_path)
    heard: list[tuple[str, int, int, int, list[int]]] = []

    def hear(topic: str, number: int, first: int, end: int, codes: Callable[[], list[int]]) -> None:
        heard.append((topic, number, first, end, codes()))

    for queue_id in (1, 1, 2):
        queues.append(queues.get_or_create("T", queue_id), 0, 90, queue_id * 10)
    listeners = [ArrivalListener({"T"}, hear), ArrivalListener({"Other"}, hear)]
    queues.publish(listeners)
    queues.publish(listeners)
    assert sorted(heard) == [("T", 1, 0, 2, [10, 10]), ("T", 2, 0, 1, [20])]


def test_tails_of_many_queues_are_written_in_turns(tmp_path: Path) -> None:
    queues = table(tmp_path)
    for queue_id in range(5):
        queues.append(queues.get_or_create("T", queue_id), 0, 90, 0)
        queues.publish([])
    queues.write_tails(2 * MAKING_COST)
    assert sorted(each.name for each in (tmp_path / "T").iterdir()) == ["0", "1"]
    queues.write_tails(2 * MAKING_COST)
    queues.write_tails()
    assert len(list((tmp_path / "T").iterdir())) == 5


def test_a_damaged_queue_is_reported_and_left_out(tmp_path: Path) -> None:
    queues = table(tmp_path)
    for topic in ("A", "B"):
        queues.append(queues.get_or_create(topic, 0), 0, 90, 0)
    queues.publish([])
    queues.write_tails()
    (tmp_path / "A" / "0" / "00000000000000000000").write_bytes(b"short")
    again = table(tmp_path)
    assert len(again.load()) == 1
    assert again.topics() == ["B"]
    assert not (tmp_path / "A" / "0").exists()


def test_dirty_files_are_taken_once(tmp_path: Path) -> None:
    queues = table(tmp_path)
    queues.append(queues.get_or_create("T", 0), 0, 90, 0)
    queues.publish([])
    queues.write_tails()
    assert queues.take_dirty(least_bytes=21) == {}
    taken = queues.take_dirty()
    assert list(taken.values()) == [20]
    assert queues.take_dirty() == {}
    queues.mark_dirty(taken)
    assert queues.take_dirty() == taken


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../../etc", "a\0b"])
def test_a_topic_that_leads_elsewhere_is_no_folder(topic: str) -> None:
    assert not is_folder_name(topic)
    assert is_folder_name("%RETRY%group|a-b_c")
