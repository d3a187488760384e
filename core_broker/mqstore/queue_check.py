"""Consume queues against the commit log, in one walk over the log.

The log holds messages of a queue in the order of queue offsets: each queue is read once from
beginning to end, READ_UNITS at a time. A unit without a matching record when the walk has passed
points to no message of the queue. A record without a unit cannot be consumed.

The queue offsets of a topic that was deleted and created again start at 0: units belong to the
later messages, and missing units of earlier messages are discarded.
"""

from pathlib import Path

from core_broker.mqstore.context import VerificationContext
from core_broker.mqstore.folder import (
    LMQ_PREFIX,
    DataFile,
    QueueFolder,
    StoreFolder,
    data_files,
    read_range,
)
from core_broker.mqstore.report import Report, display_name
from core_broker.store.log_scan import LogRecord
from core_broker.store.segments import NAME_DIGITS, segment_path
from core_broker.store.unit_layout import (
    BLANK_SIZE,
    EXT_ADDRESS_MAX,
    UNIT,
    UNIT_BYTES,
    UNIT_LAYOUT,
)

#: Size of the read buffer of one queue, units.
READ_UNITS = 256
#: Records without a unit kept for each queue; further records are only counted.
MISSING_KEPT = 100

_pack = UNIT.pack
_TAGS_CODE_AT = UNIT_LAYOUT.at("tags_code")
_unpack = UNIT.unpack


class QueueCheck:
    """The check of one queue."""

    def __init__(
        self, path: Path, files: list[DataFile], file_size: int, context: VerificationContext
    ) -> None:
        self.path = path
        self.matched = 0
        self._context = context
        self._files = {file.start // UNIT_BYTES: file.path for file in files}
        self._per_file = file_size // UNIT_BYTES
        #: Queue offset up to which all units have been checked.
        self._cursor = min(self._files, default=0)
        self._newest = -1
        self._units = b""
        self._units_from = 0
        #: Physical offset of each record without a matching unit, by queue offset.
        self._missing: dict[int, int] = {}
        #: Numbers of records beyond MISSING_KEPT whose unit is due, and whose unit may lag.
        self._missing_more = 0
        self._lagging_more = 0

    def check(self, queue_offset: int, offset: int, expected: bytes) -> None:
        """Compare the unit of the queue's next record with the `expected` bytes."""
        at = (queue_offset - self._units_from) * UNIT_BYTES
        if not 0 <= at < len(self._units):
            self._load(queue_offset)
            at = 0
        actual = self._units[at : at + UNIT_BYTES]
        if queue_offset <= self._newest:
            self._missing.clear()
            self._missing_more = self._lagging_more = 0
        self._newest = queue_offset
        if actual == expected:
            self._match(queue_offset)
        else:
            self._mismatch(queue_offset, offset, actual, expected)

    def _match(self, queue_offset: int) -> None:
        if queue_offset > self._cursor:
            self._check_unmatched_up_to(queue_offset)
        self._cursor = queue_offset + 1
        self.matched += 1

    def _mismatch(self, queue_offset: int, offset: int, actual: bytes, expected: bytes) -> None:
        if len(actual) == UNIT_BYTES and actual[:_TAGS_CODE_AT] == expected[:_TAGS_CODE_AT]:
            code, of_record = _unpack(actual)[2], _unpack(expected)[2]
            if not (self._context.has_ext and code <= EXT_ADDRESS_MAX):
                reason = f"the tags code is {code}, by the record it is {of_record}"
                self._problem(queue_offset, reason)
            self._match(queue_offset)
        elif len(self._missing) < MISSING_KEPT:
            self._missing[queue_offset] = offset
        elif self._context.may_lag(offset):
            self._lagging_more += 1
        else:
            self._missing_more += 1

    def _check_unmatched_up_to(self, end: int) -> None:
        """Check the units from the cursor to `end`: none has a matching record."""
        number = self._cursor
        while number < end:
            if number - number % self._per_file in self._files:
                self._check_unmatched(number)
                number += 1
            else:
                number = self._report_gap(number, end)

    def _report_gap(self, number: int, end: int) -> int:
        """Report the units of missing files as one problem; return the next existing unit."""
        stop = min([end, *(first for first in self._files if first > number)])
        for offset in [offset for offset in self._missing if number <= offset < stop]:
            del self._missing[offset]
        reason = f"units up to {stop - 1} are in no file, but units follow"
        self._problem(number, reason, stop - number)
        return stop

    def _check_unmatched(self, number: int) -> None:
        unit = self._unit(number)
        expected = self._missing.pop(number, None)
        if len(unit) < UNIT_BYTES:
            self._problem(number, "the file ends before the unit, but units follow")
            return
        offset, size, code = _unpack(unit)
        is_unit = offset >= 0 and size > 0
        is_blank = size == BLANK_SIZE and code == 0
        if is_unit and (is_blank or self._context.may_dangle(offset)):
            return
        if expected is not None:
            reason = f"it points to {offset}, {size} bytes; its record lies at {expected}"
        elif not is_unit:
            reason = f"not a unit ({offset}, {size}), but units follow"
        else:
            reason = f"it points to {offset}, {size} bytes; no such message of this queue exists"
        self._problem(number, reason)

    def finish(self) -> int:
        """Check the remaining units; return the number of records at the end without a unit yet."""
        self._check_trailing()
        lagging = self._lagging_more
        for number, offset in self._missing.items():
            if self._context.may_lag(offset):
                lagging += 1
            else:
                self._problem(number, f"the record at {offset} has no unit here")
        if self._missing_more:
            reason = f"{self._missing_more} more records of the queue have no unit"
            self._context.report.problem(self.path, 0, reason, self._missing_more)
        self._units = b""
        return lagging

    def _check_trailing(self) -> None:
        """Check the units after the last message; an empty unit ends the units of a file."""
        number = self._cursor
        while True:
            unit = self._unit(number)
            if len(unit) == UNIT_BYTES and any(unit):
                self._check_unmatched(number)
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
            self._context.report.problem(path, 0, f"the file cannot be read: {error.strerror}")

    def _problem(self, number: int, reason: str, times: int = 1) -> None:
        within = number % self._per_file
        path = segment_path(self.path, (number - within) * UNIT_BYTES)
        reason = f"unit {number}: {reason}"
        self._context.report.problem(path, within * UNIT_BYTES, reason, times)


class QueueChecks:
    """All consume queues of a folder."""

    def __init__(
        self,
        folder: StoreFolder,
        file_size: int,
        context: VerificationContext,
        *,
        known_topics: frozenset[str] | None,
    ) -> None:
        self._folder = folder
        self._file_size = file_size
        self._context = context
        self._known_topics = known_topics
        self._queues: dict[tuple[str, int], QueueCheck] = {}
        self._deleted = 0
        folders, unexpected = folder.queues()
        for entry in unexpected:
            context.report.problem(entry.path, 0, entry.reason)
        for queue in folders:
            if queue.topic.startswith(LMQ_PREFIX):
                continue
            self._queues[queue.topic, queue.queue_id] = self._open(queue)

    def _open(self, queue: QueueFolder) -> QueueCheck:
        files, unexpected = data_files(queue.path, NAME_DIGITS)
        for entry in unexpected:
            self._context.report.problem(entry.path, 0, entry.reason)
        files = aligned_files(files, self._file_size, self._context.report, UNIT_BYTES)
        return QueueCheck(queue.path, files, self._file_size, self._context)

    def check(self, record: LogRecord, code: int) -> None:
        """Check the unit of a consumable record."""
        queue = self._queues.get((record.topic, record.queue_id))
        if queue is None:
            if self._known_topics is not None and record.topic not in self._known_topics:
                self._deleted += 1
                return
            path = self._folder.paths.queues / record.topic / str(record.queue_id)
            queue = QueueCheck(path, [], self._file_size, self._context)
            self._queues[record.topic, record.queue_id] = queue
        queue.check(record.queue_offset, record.offset, _pack(record.offset, record.size, code))

    def finish(self) -> None:
        """Check the units without a matching record, and count."""
        report = self._context.report
        lagging = 0
        for queue in self._queues.values():
            lagging += queue.finish()
            report.counts["units"] += queue.matched
        report.counts["queues"] = len(self._queues)
        if lagging:
            report.note(f"{lagging} records at the end have no unit yet; a start adds them.")
        if self._deleted:
            report.note(f"{self._deleted} records belong to topics that were deleted.")


def aligned_files(
    files: list[DataFile], size: int, report: Report, unit: int = 1
) -> list[DataFile]:
    """Return the files whose start is a multiple of `size`; report misnamed and missized files.

    An empty last file, left by a crash, is only noted: the next start removes the file.
    """
    if files and files[-1].size == 0:
        name = display_name(report.root, files[-1].path)
        report.note(f"{name} is empty; the next start removes the file.")
        files = files[:-1]
    aligned: list[DataFile] = []
    for file in files:
        if file.start % size or file.start % unit:
            report.problem(file.path, 0, f"the name is not a multiple of the file size, {size}")
            continue
        if aligned and file.start != aligned[-1].start + size:
            report.problem(file.path, 0, f"a file {aligned[-1].start + size} is missing before it")
        if file.size != size:
            report.problem(file.path, 0, f"the file has {file.size} bytes, not {size}")
        aligned.append(file)
    return aligned
