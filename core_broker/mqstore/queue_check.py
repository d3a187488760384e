"""Consume queues against the commit log, in one walk over the log.

Messages of a queue lie in the log in the order of their queue offsets, so each queue is read once
from its beginning to its end, a piece at a time. Whatever unit no record has claimed when the walk
has passed it points to no message of its queue; whatever record found no unit cannot be consumed.

A topic that was deleted and created again counts its offsets anew: then units belong to the later
messages, and what the earlier ones found is forgotten.
"""

from dataclasses import dataclass, field
from pathlib import Path

from core_broker.mqstore.folder import (
    LMQ_PREFIX,
    DataFile,
    QueueFolder,
    StoreFolder,
    data_files,
    read_range,
)
from core_broker.mqstore.log_view import Damage
from core_broker.mqstore.report import Report
from core_broker.store.consume_queue import BLANK_SIZE, UNIT, UNIT_BYTES
from core_broker.store.log_scan import LogRecord
from core_broker.store.segments import NAME_DIGITS, segment_path

#: Units of one queue that are in memory at a time.
READ_UNITS = 256
#: Records of one queue without a unit that are remembered one by one; the rest is counted.
MISSING_KEPT = 100
#: Tags codes up to this one are addresses in consumequeue_ext, as RocketMQ's ConsumeQueueExt says.
EXT_ADDRESS_MAX = -(2**31) - 1

_pack = UNIT.pack
_unpack = UNIT.unpack


@dataclass(slots=True)
class Circumstances:
    """What the checks of one verification share."""

    report: Report
    min_physical: int
    #: From here on records may lack units and index items: the broker has them in memory, or the
    #: next start adds them. None when the broker stopped in order.
    lag_from: int | None = None
    is_in_use: bool = False
    has_ext: bool = False
    damage: Damage = field(default_factory=Damage)
    #: Known when the walk is over.
    log_end: int = 0

    def may_lag(self, offset: int) -> bool:
        """Tell whether a record may be in no queue and no index yet."""
        return self.lag_from is not None and offset >= self.lag_from

    def is_excused(self, offset: int) -> bool:
        """Tell whether something may point to an offset although no record was found there."""
        return (
            offset < self.min_physical
            or offset in self.damage
            or (self.is_in_use and bool(self.log_end) and offset >= self.log_end)
        )


class QueueCheck:
    """The check of one queue."""

    def __init__(
        self, path: Path, files: list[DataFile], file_size: int, shared: Circumstances
    ) -> None:
        self.path = path
        self.matched = 0
        self._shared = shared
        self._files = {each.start // UNIT_BYTES: each.path for each in files}
        self._per_file = file_size // UNIT_BYTES
        #: Units before this one have been judged.
        self._cursor = min(self._files, default=0)
        self._newest = -1
        self._units = b""
        self._units_from = 0
        #: Queue offset → physical offset of records whose unit is not what it must be.
        self._missing: dict[int, int] = {}
        #: What did not find room there: that should have a unit, and that need not yet.
        self._missing_more = 0
        self._lagging_more = 0

    def check(self, queue_offset: int, offset: int, expected: bytes) -> None:
        """Look for the unit of the next record of this queue."""
        at = (queue_offset - self._units_from) * UNIT_BYTES
        if not 0 <= at < len(self._units):
            self._load(queue_offset)
            at = 0
        found = self._units[at : at + UNIT_BYTES]
        if queue_offset <= self._newest:
            self._missing.clear()
            self._missing_more = self._lagging_more = 0
        self._newest = queue_offset
        if found == expected:
            self._claim(queue_offset)
        else:
            self._mismatch(queue_offset, offset, found, expected)

    def _claim(self, queue_offset: int) -> None:
        if queue_offset > self._cursor:
            self._judge_up_to(queue_offset)
        self._cursor = queue_offset + 1
        self.matched += 1

    def _mismatch(self, queue_offset: int, offset: int, found: bytes, expected: bytes) -> None:
        if len(found) == UNIT_BYTES and found[:12] == expected[:12]:
            code, right = _unpack(found)[2], _unpack(expected)[2]
            if not (self._shared.has_ext and code <= EXT_ADDRESS_MAX):
                self._problem(queue_offset, f"the tags code is {code}, by the record it is {right}")
            self._claim(queue_offset)
        elif len(self._missing) < MISSING_KEPT:
            self._missing[queue_offset] = offset
        elif self._shared.may_lag(offset):
            self._lagging_more += 1
        else:
            self._missing_more += 1

    def _judge_up_to(self, end: int) -> None:
        """Judge the units that no record has claimed; all that come later were or will be."""
        number = self._cursor
        while number < end:
            if number - number % self._per_file in self._files:
                self._judge(number)
                number += 1
            else:
                number = self._judge_gap(number, end)

    def _judge_gap(self, number: int, end: int) -> int:
        """Report units whose file is missing, all at once; return where it goes on."""
        stop = min([end, *(first for first in self._files if first > number)])
        for each in [each for each in self._missing if number <= each < stop]:
            del self._missing[each]
        reason = f"units up to {stop - 1} are in no file, but units follow"
        self._problem(number, reason, stop - number)
        return stop

    def _judge(self, number: int) -> None:
        unit = self._unit(number)
        expected = self._missing.pop(number, None)
        if len(unit) < UNIT_BYTES:
            self._problem(number, "the file ends before the unit, but units follow")
            return
        offset, size, code = _unpack(unit)
        is_unit = offset >= 0 and size > 0
        is_blank = size == BLANK_SIZE and code == 0
        if is_unit and (is_blank or self._shared.is_excused(offset)):
            return
        if expected is not None:
            reason = f"it points to {offset}, {size} bytes; its record lies at {expected}"
        elif not is_unit:
            reason = f"it is no unit ({offset}, {size}), but units follow"
        else:
            reason = f"it points to {offset}, {size} bytes; no such message of this queue is there"
        self._problem(number, reason)

    def finish(self) -> int:
        """Judge what is left; return how many records at the end have no unit yet."""
        self._judge_rest()
        lagging = self._lagging_more
        for number, offset in self._missing.items():
            if self._shared.may_lag(offset):
                lagging += 1
            else:
                self._problem(number, f"the record at {offset} has no unit here")
        if self._missing_more:
            reason = f"{self._missing_more} more records of the queue have no unit"
            self._shared.report.problem(self.path, 0, reason, self._missing_more)
        self._units = b""
        return lagging

    def _judge_rest(self) -> None:
        """Units behind the last message; the first empty one of a file ends it."""
        number = self._cursor
        while True:
            unit = self._unit(number)
            if len(unit) == UNIT_BYTES and any(unit):
                self._judge(number)
                number += 1
                continue
            later = [first for first in self._files if first > number]
            if not later:
                return
            number = min(later)

    # -- reading --

    def _unit(self, number: int) -> bytes:
        at = (number - self._units_from) * UNIT_BYTES
        if not 0 <= at < len(self._units):
            self._load(number)
            at = 0
        return self._units[at : at + UNIT_BYTES]

    def _load(self, number: int) -> None:
        self._units, self._units_from = b"", number
        within = number % self._per_file
        path = self._files.get(number - within)
        if path is None or number < 0:
            return
        count = min(READ_UNITS, self._per_file - within)
        try:
            self._units = read_range(path, within * UNIT_BYTES, count * UNIT_BYTES)
        except OSError as error:
            del self._files[number - within]
            self._shared.report.problem(path, 0, f"the file cannot be read: {error.strerror}")

    def _problem(self, number: int, reason: str, times: int = 1) -> None:
        within = number % self._per_file
        path = segment_path(self.path, (number - within) * UNIT_BYTES)
        reason = f"unit {number}: {reason}"
        self._shared.report.problem(path, within * UNIT_BYTES, reason, times)


class QueueChecks:
    """All consume queues of a folder."""

    def __init__(
        self,
        folder: StoreFolder,
        file_size: int,
        shared: Circumstances,
        *,
        known_topics: frozenset[str] | None,
    ) -> None:
        self._folder = folder
        self._file_size = file_size
        self._shared = shared
        self._known_topics = known_topics
        self._queues: dict[tuple[str, int], QueueCheck] = {}
        self._deleted = 0
        folders, odd = folder.queues()
        for each in odd:
            shared.report.problem(each.path, 0, each.reason)
        for queue in folders:
            if queue.topic.startswith(LMQ_PREFIX):
                continue
            self._queues[queue.topic, queue.queue_id] = self._open(queue)

    def _open(self, queue: QueueFolder) -> QueueCheck:
        files, odd = data_files(queue.path, NAME_DIGITS)
        for each in odd:
            self._shared.report.problem(each.path, 0, each.reason)
        files = right_files(files, self._file_size, self._shared.report, UNIT_BYTES)
        return QueueCheck(queue.path, files, self._file_size, self._shared)

    def check(self, record: LogRecord, code: int) -> None:
        """Look for the unit of a record that consumers see."""
        queue = self._queues.get((record.topic, record.queue_id))
        if queue is None:
            if self._known_topics is not None and record.topic not in self._known_topics:
                self._deleted += 1
                return
            path = self._folder.paths.queues / record.topic / str(record.queue_id)
            queue = QueueCheck(path, [], self._file_size, self._shared)
            self._queues[record.topic, record.queue_id] = queue
        queue.check(record.queue_offset, record.offset, _pack(record.offset, record.size, code))

    def finish(self) -> None:
        """Judge what no record has claimed."""
        report = self._shared.report
        lagging = 0
        for queue in self._queues.values():
            lagging += queue.finish()
            report.figures["units"] += queue.matched
        report.figures["queues"] = len(self._queues)
        if lagging:
            report.note(f"{lagging} records at the end have no unit yet; a start adds them.")
        if self._deleted:
            report.note(f"{self._deleted} records belong to topics that were deleted.")


def right_files(files: list[DataFile], size: int, report: Report, unit: int = 1) -> list[DataFile]:
    """Return the files that have the right place; wrong places and sizes are problems.

    An empty last file is what a crash may leave; a start removes it.
    """
    if files and files[-1].size == 0:
        report.note(f"{report.name(files[-1].path)} is empty; a start removes it.")
        files = files[:-1]
    right: list[DataFile] = []
    for each in files:
        if each.start % size or each.start % unit:
            report.problem(each.path, 0, f"its name is no multiple of the file size, {size}")
            continue
        if right and each.start != right[-1].start + size:
            report.problem(each.path, 0, f"a file {right[-1].start + size} is missing before it")
        if each.size != size:
            report.problem(each.path, 0, f"it has {each.size} bytes, not {size}")
        right.append(each)
    return right
