"""Flipped bits and other damage: verify reports the damage and never crashes."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.message.record_layout import (
    BODY_LENGTH_AT,
    BORN_TIMESTAMP_AT,
    FLAG_AT,
    QUEUE_OFFSET_AT,
    SYS_FLAG_AT,
)
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.log_view import LogView
from core_broker.mqstore.report import Report
from core_broker.store.log_scan import LogRecord, LogScan
from tests.support.damage import damaged
from tests.support.stores import SEGMENT_BYTES

Check = Callable[[], Report]

#: Fields of a record without redundancy elsewhere in the store: flag, system flag (except host and
#: transaction bits), born time and host, store time (the index has seconds, for messages with keys)
#: and host, reconsume times, prepared transaction offset.
UNCOVERED = (
    *range(FLAG_AT, QUEUE_OFFSET_AT),
    *range(SYS_FLAG_AT, BORN_TIMESTAMP_AT),
    *range(BORN_TIMESTAMP_AT, BODY_LENGTH_AT),
)


def records_of(root: Path) -> list[LogRecord]:
    """Return the records of the first segment."""
    log = LogView(root / "commitlog", StoreFolder(root).segments()[0][:1], SEGMENT_BYTES)
    return list(LogScan(log, 0, check_crc=True))


def sweep(path: Path, positions: list[int], check: Check) -> list[int]:
    """Flip one bit at each position in turn; return the positions without a reported problem."""
    data = bytearray(path.read_bytes())
    missed = []
    for number, position in enumerate(positions):
        bit = 1 << (number * 5 % 8)
        data[position] ^= bit
        path.write_bytes(data)
        report = check()
        data[position] ^= bit
        for problem in report.problems:
            assert problem.file
            assert problem.offset >= 0
        if report.is_clean:
            missed.append(position)
    path.write_bytes(data)
    assert check().is_clean
    return missed


@pytest.mark.parametrize("which", [0, 17, -1])
def test_every_covered_field_of_a_record(root: Path, check: Check, which: int) -> None:
    record = records_of(root)[which]
    missed = sweep(
        root / "commitlog/00000000000000000000",
        list(range(record.offset, record.offset + min(record.size, 220))),
        check,
    )
    assert {position - record.offset for position in missed} <= set(UNCOVERED)


def test_every_byte_of_units_in_use(root: Path, check: Check) -> None:
    queue = root / "consumequeue/TopicTest/0"
    assert sweep(queue / "00000000000000000000", list(range(0, 400, 3)), check) == []
    assert sweep(queue / "00000000000000000400", list(range(1, 400, 3)), check) == []


def test_every_byte_of_an_index_file_in_use(root: Path, check: Check) -> None:
    oldest = min((root / "index").iterdir())
    # Slots, and items from number 2 on: the time of item 1 has no redundancy, and item 0 is unused.
    slots_end = 40 + 64 * 4
    positions = [*range(0, slots_end, 3), *range(slots_end + 40, oldest.stat().st_size, 3)]
    assert sweep(oldest, positions, check) == []


def test_random_damage_never_crashes_verify(root: Path, check: Check) -> None:
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    originals = {path: path.read_bytes() for path in files}
    generator = random.Random(7)
    for _ in range(150):
        chosen = generator.sample(files, generator.randint(1, 3))
        for path in chosen:
            path.write_bytes(damaged(originals[path], generator))
        report = check()
        assert report.problem_count >= len(report.problems)
        for path in chosen:
            path.write_bytes(originals[path])
    assert check().is_clean
