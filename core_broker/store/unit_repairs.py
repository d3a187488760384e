"""Rebuilds damaged units of consume queues from the log.

A reader that meets a damaged unit raises DamagedUnit, which is handled as a ColdRead: an I/O thread
scans the log between the nearest right units, the event loop overwrites the damaged units, and the
read runs again. A unit without a record in the log stays, and readers skip the unit. A crash in
between leaves a damaged unit, which the next read repairs.
"""

import time
from collections.abc import Callable, Iterator

from core_broker.store.cold_reads import WAITING_MAX, ColdRead
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.damage import Damage
from core_broker.store.files import Files
from core_broker.store.layout import StoreParts
from core_broker.store.log_scan import LogRecord, LogScan, find_record
from core_broker.store.log_snapshot import LogSnapshot
from core_broker.store.unit_check import UnitCheck, is_message
from core_broker.store.unit_layout import BLANK_SIZE, LIGHT_QUEUE_PREFIX, UNIT

#: Units on either side of a damaged unit among which a right unit is searched. Without one, the
#: scan begins at the start of the log, or ends at its end.
NEIGHBOURS = 256
#: Maximum number of remembered units without a record. Beyond the maximum all are forgotten, and
#: a scan may run again.
REMEMBERED_MAX = 10_000
#: Maximum number of pending repairs, each with up to 100 KB of units. Beyond the maximum the oldest
#: one is dropped, and its scan runs again. At most WAITING_MAX reads wait for repairs.
PENDING_MAX = 2 * WAITING_MAX
#: Records scanned between two pauses, and duration of a pause, seconds: the scan needs the GIL.
SCANNED_AT_ONCE = 256
PAUSE_S = 0.001

#: A unit: physical offset, size, tags code.
Unit = tuple[int, int, int]


class DamagedUnit(ColdRead):
    """A unit does not match its record: run the repair off the loop, then repeat the read."""

    def __init__(self, repair: "UnitRepair") -> None:
        Exception.__init__(self, f"unit {repair.offset} of {repair.queue.folder} is damaged")
        self.spans = []
        self.repairs = [repair]
        self.is_in_vain = False


class UnitRepair:
    """The repair of one unit and of the damaged units beside it.

    `units` are the units around the damaged one, the first of which has the offset `first`.
    """

    def __init__(
        self,
        queue: ConsumeQueue,
        offset: int,
        first: int,
        units: list[Unit],
        log_range: LogSnapshot,
        check: UnitCheck,
        apply: Callable[["UnitRepair"], None],
    ) -> None:
        self.queue = queue
        self.offset = offset
        #: The rebuilt units that differ from the units in the queue, by queue offset.
        self.rebuilt: dict[int, bytes] = {}
        self._first = first
        self._units = units
        self._log = log_range
        self._check = check
        self._apply = apply
        self._name = (queue.topic, queue.queue_id)
        self._is_done = False

    def run(self) -> None:
        """Scan the log; runs off the loop. A second call does nothing."""
        if self._is_done:
            return
        try:
            low, start = self._right_before(self.offset)
            high, end = self._right_behind(self.offset)
            self._scan(low, high, start, end)
        finally:
            self._log.close()
        self._is_done = True

    def apply(self) -> None:
        """Overwrite the damaged units, on the event loop."""
        self._apply(self)

    def _right_before(self, offset: int) -> tuple[int, int]:
        """Return the nearest right unit before an offset, and the end of its record."""
        for number in range(offset - 1, self._first - 1, -1):
            place, size, _ = self._units[number - self._first]
            if self._is_right(number, place, size):
                return number, place + size
        return self._first - 1, self._log.start

    def _right_behind(self, offset: int) -> tuple[int, int]:
        """Return the nearest right unit behind an offset, and the start of its record."""
        end = self._first + len(self._units)
        for number in range(offset + 1, end):
            place, size, _ = self._units[number - self._first]
            if self._is_right(number, place, size):
                return number, place
        return end, self._log.end

    def _is_right(self, number: int, place: int, size: int) -> bool:
        if size == BLANK_SIZE:
            return False
        return self._check.record(self._log, self._name, number, place, size) is not None

    def _scan(self, low: int, high: int, start: int, end: int) -> None:
        """Rebuild the units between `low` and `high` from the records from `start` to `end`."""
        is_sure = low >= self._first  # else records of a deleted topic of this name may come first
        missing = set(range(low + 1, high))
        for count, record in enumerate(_records(self._log, start, end), 1):
            if count % SCANNED_AT_ONCE == 0:
                time.sleep(PAUSE_S)
            number = record.queue_offset
            if not low < number < high or not is_message(record, self._name):
                continue
            unit = self._check.unit(record)
            if unit != UNIT.pack(*self._units[number - self._first]):
                self.rebuilt[number] = unit
            else:
                self.rebuilt.pop(number, None)
            missing.discard(number)
            if is_sure and not missing:
                return


class UnitRepairs:
    """Starts repairs and applies their results. Event loop only, except the scan."""

    def __init__(self, parts: StoreParts, files: Files, check: UnitCheck, damage: Damage) -> None:
        self._log, self._queues = parts.log, parts.queues
        self._files = files
        self._check = check
        self._damage = damage
        self._pending: dict[tuple[ConsumeQueue, int], UnitRepair] = {}
        self._hopeless: set[tuple[ConsumeQueue, int]] = set()

    def require(self, queue: ConsumeQueue, offset: int) -> None:
        """Raise DamagedUnit for a damaged unit; return when the log has no record for the unit.

        Raises ColdRead when the units beside the damaged one are not in memory.
        """
        key = (queue, offset)
        if key in self._hopeless or queue.topic.startswith(LIGHT_QUEUE_PREFIX):
            return
        repair = self._pending.get(key)
        if repair is None:
            first = max(queue.min_offset, offset - NEIGHBOURS)
            units = list(queue.unit_tuples(first, offset + NEIGHBOURS + 1 - first))
            if not 0 <= offset - first < len(units):
                return
            repair = UnitRepair(
                queue, offset, first, units, self._snapshot(), self._check, self._apply
            )
            if len(self._pending) >= PENDING_MAX:
                del self._pending[next(iter(self._pending))]
            self._pending[key] = repair
        raise DamagedUnit(repair)

    def _snapshot(self) -> LogSnapshot:
        log = self._log
        return LogSnapshot(
            *(self._files, log.folder, log.segment_size, log.min_offset, log.written, log.framing)
        )

    def _apply(self, repair: UnitRepair) -> None:
        """Overwrite the damaged units of a finished repair; a second call does nothing."""
        queue, key = repair.queue, (repair.queue, repair.offset)
        if self._pending.pop(key, None) is None:
            return
        if self._queues.get(queue.topic, queue.queue_id) is not queue:
            return
        for offset, unit in repair.rebuilt.items():
            if offset >= queue.min_offset:  # else retention deleted the file during the scan
                self.replace(queue, offset, unit)
        if repair.offset not in repair.rebuilt:
            if len(self._hopeless) >= REMEMBERED_MAX:
                self._hopeless.clear()
            self._hopeless.add(key)

    def replace(self, queue: ConsumeQueue, offset: int, unit: bytes) -> None:
        """Overwrite one unit, and report the repair."""
        queue.replace(offset, unit)
        self._queues.repairs += 1
        self._damage.report_repair(*queue.location_of(offset), offset)


def _records(log_range: LogSnapshot, start: int, end: int) -> Iterator[LogRecord]:
    """Yield the whole records from `start` to `end`, skipping damage."""
    at: int | None = start
    while at is not None and at < end:
        scan = LogScan(log_range, at, check_crc=True)
        for record in scan:
            if record.offset >= end:
                return
            yield record
        at = find_record(log_range, scan.end + 1, end)
