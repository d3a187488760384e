"""A damaged unit of a consume queue is rebuilt from the log, at the start or at the next read."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.message.hashing import tags_code
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.store import ColdRead, PropertyFilter, unit_repairs
from core_broker.store.files import DiskFiles, Files
from core_broker.store.simulated_files import SimulatedFiles
from core_broker.store.unit_layout import UNIT, UNIT_BYTES
from tests.support.stores import Bench, message, warmed
from tests.support.unit_damage import CODE_CASES, PLACE_CASES

TOPIC = "TopicTest"
COUNT = 60
QUEUE_FILE = 20 * UNIT_BYTES
#: Damaged units: the first, one in the middle, the ends of a file, and the newest.
DAMAGED = (0, 19, 20, 31, COUNT - 1)
MOMENTS = ("stopped", "killed", "serving")


@pytest.fixture(params=["simulated", "real"])
def root_files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Files]:
    if request.param == "simulated":
        return Path("/store"), SimulatedFiles(1)
    return tmp_path / "store", DiskFiles()


def filled(root: Path, files: Files) -> Bench:
    """Messages of two topics in turn, and rolled queue files."""
    bench = Bench(root, files, mapped_file_size_consume_queue=QUEUE_FILE).open()
    for number in range(COUNT):
        tag = "odd" if number % 2 else "even"
        bench.put(message(number, properties={"TAGS": tag, "n": str(number)}))
        bench.put(message(number, topic="TopicMore"))
    bench.run_io()
    bench.tick(61_000)
    return bench


def unit_at(bench_root: Path, number: int) -> tuple[Path, int]:
    first = number - number % 20
    path = bench_root / "consumequeue" / TOPIC / "0" / f"{first * UNIT_BYTES:020d}"
    return path, number % 20 * UNIT_BYTES


def damage(root: Path, files: Files, number: int, change: Callable[[bytes], bytes]) -> None:
    path, at = unit_at(root, number)
    file = files.open(path)
    unit = file.pread(UNIT_BYTES, at)
    changed = change(unit)
    assert changed != unit
    file.pwrite(changed, at)
    file.sync()
    file.close()


def unit_of(root: Path, files: Files, number: int) -> bytes:
    path, at = unit_at(root, number)
    file = files.open(path)
    try:
        return file.pread(UNIT_BYTES, at)
    finally:
        file.close()


def consumed(
    bench: Bench,
    accept: Callable[[int], bool] | None = None,
    by_properties: PropertyFilter | None = None,
) -> list[int]:
    """The queue offsets of the messages that a consumer gets."""
    store = bench.store
    offset, end = store.queue_range(TOPIC, 0)
    found: list[MessageExt] = []
    while offset < end:
        ask = partial(store.get, TOPIC, 0, offset, 32, None, accept, by_properties)
        result = warmed(store, ask)
        found += [decode_record(each) for each in result.records]
        assert result.next_offset > offset
        offset = result.next_offset
    assert {(each.topic, each.queue_id) for each in found} <= {(TOPIC, 0)}
    return [each.queue_offset for each in found]


def damaged_store(
    root: Path, files: Files, number: int, moment: str, change: Callable[[bytes], bytes]
) -> Bench:
    """A serving store with one damaged unit, damaged at the given moment."""
    bench = filled(root, files)
    if moment == "serving":
        damage(root, files, number, change)
        return bench
    if moment == "stopped":
        bench.store.close()
    elif isinstance(files, SimulatedFiles):
        files.kill()
    else:
        assert bench.store._locks is not None
        bench.store._locks.release()
    damage(root, files, number, change)
    return Bench(root, files, mapped_file_size_consume_queue=QUEUE_FILE).open()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", DAMAGED)
@pytest.mark.parametrize("case", PLACE_CASES)
def test_reliability_05_damaged_place(
    root_files: tuple[Path, Files], case: str, number: int, moment: str
) -> None:
    root, files = root_files
    bench = damaged_store(root, files, number, moment, PLACE_CASES[case])
    assert consumed(bench) == list(range(COUNT))
    right = UNIT.unpack(unit_of(root, files, number))
    assert right[2] == tags_code("odd" if number % 2 else "even")
    # The next message gets the next offset: no unit was forgotten.
    assert bench.put(message(COUNT))[0].offset_logical == COUNT
    bench.store.close()
    bench = Bench(root, files, mapped_file_size_consume_queue=QUEUE_FILE).open()
    assert consumed(bench) == list(range(COUNT + 1))
    assert bench.store.stats().repaired_units == 0
    bench.store.close()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", DAMAGED)
@pytest.mark.parametrize("case", CODE_CASES)
def test_reliability_05_damaged_tags_code(
    root_files: tuple[Path, Files],
    case: str,
    number: int,
    moment: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A consumer with a tag filter gets its message, although filters read the units only."""
    root, files = root_files
    with caplog.at_level(logging.WARNING):
        bench = damaged_store(root, files, number, moment, CODE_CASES[case])
        for start, tag in enumerate(("even", "odd")):
            numbers = consumed(bench, tags_code(tag).__eq__)
            assert numbers == list(range(start, COUNT, 2)), tag
    assert bench.store.stats().repaired_units == 1
    assert "was damaged at" in caplog.text
    assert UNIT.unpack(unit_of(root, files, number))[2] == tags_code(
        "odd" if number % 2 else "even"
    )
    bench.store.close()


@pytest.mark.parametrize("case", PLACE_CASES)
def test_a_filter_by_properties_hides_no_message(case: str) -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = damaged_store(root, files, 31, "serving", PLACE_CASES[case])
    only = PropertyFilter(lambda properties: properties.get("n") == "31", 1000)
    assert consumed(bench, lambda code: True, only) == [31]
    bench.store.close()


def test_all_damaged_units_of_a_page_are_rebuilt_at_once() -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = filled(root, files)
    for number in range(5, 38):
        damage(root, files, number, lambda unit: bytes(4) + unit[::-1][:16])
    assert consumed(bench) == list(range(COUNT))
    assert bench.store.stats().repaired_units == 33
    bench.store.close()


def test_without_a_right_neighbour_the_whole_log_is_scanned() -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = filled(root, files)
    for number in range(COUNT):
        damage(root, files, number, PLACE_CASES["beyond the log"])
    assert consumed(bench) == list(range(COUNT))
    bench.store.close()


def test_a_unit_in_memory_is_rebuilt() -> None:
    bench = Bench(Path("/store"), SimulatedFiles(1)).open()
    for number in range(8):
        bench.put(message(number))
    queue = bench.store._queues.get(TOPIC, 0)
    assert queue is not None
    right = queue.read(3, 1)
    queue.replace(3, UNIT.pack(1, 300, 7))
    assert consumed(bench) == list(range(8))
    assert queue.read(3, 1) == right
    bench.store.close()


def test_a_damaged_record_is_skipped_and_scanned_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = filled(root, files)
    place, _, _ = UNIT.unpack(unit_of(root, files, 31))
    log = root / "commitlog" / f"{place - place % (16 * 1024):020d}"
    files.flip_bit(log, place % (16 * 1024) + 90)
    others = [number for number in range(COUNT) if number != 31]
    assert consumed(bench) == others
    assert (bench.store.stats().damaged_places, bench.store.stats().repaired_units) == (1, 0)

    def no_scan(*_: object) -> None:
        raise AssertionError("scanned again")

    monkeypatch.setattr("core_broker.store.unit_repairs.UnitRepair.run", no_scan)
    assert consumed(bench) == others
    bench.store.close()


@pytest.mark.parametrize("is_scanned", [False, True])
def test_a_kill_during_the_repair_leaves_the_repair_to_the_next_start(is_scanned: bool) -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = damaged_store(root, files, 31, "serving", PLACE_CASES["beyond the log"])
    with pytest.raises(ColdRead) as raised:
        bench.store.get(TOPIC, 0, 31, 32)
    if is_scanned:
        raised.value.warm()  # killed before the unit is written
    files.kill()
    bench = Bench(root, files, mapped_file_size_consume_queue=QUEUE_FILE).open()
    assert consumed(bench) == list(range(COUNT))
    bench.store.close()


def test_a_topic_deleted_during_the_repair_stays_deleted() -> None:
    root, files = Path("/store"), SimulatedFiles(1)
    bench = damaged_store(root, files, 31, "serving", PLACE_CASES["beyond the log"])
    with pytest.raises(ColdRead) as raised:
        bench.store.get(TOPIC, 0, 31, 32)
    bench.store.delete_topic(TOPIC)
    bench.store.cold_reads.warm(raised.value, lambda error: None)
    assert bench.store.queue_range(TOPIC, 0) == (0, 0)
    bench.store.close()


def test_units_of_a_topic_created_again_are_right() -> None:
    """Records of the deleted topic have the same queue offsets, and lie before the new ones."""
    root, files = Path("/store"), SimulatedFiles(1)
    bench = filled(root, files)
    bench.store.delete_topic(TOPIC)
    for number in range(30):
        bench.put(message(number, body=b"new", properties={"TAGS": "new"}))
    bench.run_io()
    bench.tick(61_000)
    for number in range(30):
        damage(root, files, number, PLACE_CASES["beyond the log"])
    store = bench.store
    result = warmed(store, lambda: store.get(TOPIC, 0, 0, 32))
    assert [decode_record(each).body for each in result.records] == [b"new"] * 30
    bench.store.close()


def test_many_different_tags_are_not_checked_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_broker.store.known_codes.KNOWN_CODES_MAX", 10)
    bench = Bench(Path("/store"), SimulatedFiles(1)).open()
    for number in range(COUNT):
        bench.put(message(number, properties={"TAGS": f"t{number}"}))
    assert consumed(bench, tags_code("t40").__eq__) == [40]
    queue = bench.store._queues.get(TOPIC, 0)
    assert queue is not None
    assert 12345 in queue.known_codes
    bench.store.close()


def test_a_read_only_disk_refuses_the_read_but_not_the_broker() -> None:
    """The unit cannot be written: the read fails with the cause, and is repeated by the client."""
    root, files = Path("/store"), SimulatedFiles(1)
    bench = damaged_store(root, files, 31, "serving", PLACE_CASES["beyond the log"])

    def fault(operation: str, path: Path) -> None:
        if operation == "write" and "consumequeue" in path.parts:
            raise OSError(28, "no space left on device")

    files.fault = fault
    with pytest.raises((OSError, StoreReadOnly)):
        consumed(bench)
    files.fault = None
    assert consumed(bench) == list(range(COUNT))
    bench.store.close()


def test_units_deleted_during_a_repair_are_left_out(root_files: tuple[Path, Files]) -> None:
    """Retention deletes files of a queue while the repair scans the log."""
    root, files = root_files
    bench = damaged_store(root, files, 31, "serving", PLACE_CASES["beyond the log"])
    store = bench.store
    with pytest.raises(ColdRead) as raised:
        store.get(TOPIC, 0, 31, 1)
    raised.value.warm()
    queue = store._queues.get(TOPIC, 0)
    assert queue is not None
    queue.min_offset = 40
    for first in (0, 20):
        files.remove(queue.forget(first))
    for repair in raised.value.repairs:
        repair.apply()
    assert consumed(bench) == list(range(40, COUNT))
    bench.store.close()


def test_pending_repairs_are_limited(
    root_files: tuple[Path, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads that are refused or given up leave their repairs; the oldest ones are dropped."""
    monkeypatch.setattr(unit_repairs, "PENDING_MAX", 2)
    root, files = root_files
    bench = filled(root, files)
    for number in (19, 20, 31):
        damage(root, files, number, PLACE_CASES["beyond the log"])
        with pytest.raises(ColdRead):
            bench.store.get(TOPIC, 0, number, 1)
    assert [offset for _, offset in bench.store._repairs._pending] == [20, 31]
    assert consumed(bench) == list(range(COUNT))
    bench.store.close()
