"""Compares the units of the newest messages with the log, before the store serves.

A tag filter skips a message by the tags code of the unit, without reading the record. So a start
checks the units of the newest messages: consumers are likely to read these messages next.
"""

from collections.abc import Callable

from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.full_disk import is_disk_full
from core_broker.store.layout import StoreParts
from core_broker.store.log_scan import LogRecord, LogScan, find_record
from core_broker.store.unit_check import UnitCheck, is_message
from core_broker.store.unit_layout import UNIT, UNIT_BYTES

#: Size of the checked end of the log, bytes.
CHECKED_BYTES = 16 * 1024 * 1024
#: Units per read of a queue; maximum number of queues with buffered units.
READ_UNITS = 512
BUFFERS_MAX = 1000
#: Maximum number of units that one start repairs.
REPAIRED_MAX = 10_000

#: Overwrites a unit: queue, queue offset, encoded unit.
Replace = Callable[[ConsumeQueue, int, bytes], None]


def check_recent_units(parts: StoreParts, check: UnitCheck, replace: Replace) -> None:
    """Repair wrong units of the messages in the last CHECKED_BYTES of the log. Waits for the disk.

    Units that belong to another whole record stay: the topic was deleted and created again.
    """
    log, units = parts.log, _Units()
    wrong: dict[tuple[ConsumeQueue, int], bytes] = {}
    start = max(log.min_offset, log.written - CHECKED_BYTES)
    at = find_record(log, start, log.written) if start > log.min_offset else start
    while at is not None and at < log.written and len(wrong) < REPAIRED_MAX:
        scan = LogScan(log, at, check_crc=False)
        for record in scan:
            queue = parts.queues.get(record.topic, record.queue_id)
            if queue is None or not is_message(record, (record.topic, record.queue_id)):
                continue
            if not queue.min_offset <= record.queue_offset < queue.max_offset:
                continue
            if _is_wrong(parts, check, queue, record, units.read(queue, record.queue_offset)):
                wrong[queue, record.queue_offset] = check.unit(record)
                if len(wrong) >= REPAIRED_MAX:
                    break
        at = find_record(log, scan.end + 1, log.written)
    try:
        for (queue, offset), unit in wrong.items():
            replace(queue, offset, unit)
    except OSError as error:
        if not is_disk_full(error):  # else the reads repair the units
            raise


def _is_wrong(
    parts: StoreParts, check: UnitCheck, queue: ConsumeQueue, record: LogRecord, unit: bytes
) -> bool:
    if len(unit) < UNIT_BYTES:
        return False
    place, size, code = UNIT.unpack(unit)
    if (place, size) == (record.offset, record.size):
        if check.is_right(record, code):
            queue.known_codes.add(code)
            return False
        return True
    name = (record.topic, record.queue_id)
    return check.record(parts.log, name, record.queue_offset, place, size) is None


class _Units:
    """Reads units of many queues, each in large pieces."""

    def __init__(self) -> None:
        self._buffers: dict[ConsumeQueue, tuple[int, bytes]] = {}

    def read(self, queue: ConsumeQueue, offset: int) -> bytes:
        """Return one encoded unit; empty when the unit cannot be read."""
        first, units = self._buffers.get(queue, (0, b""))
        if not first <= offset < first + len(units) // UNIT_BYTES:
            if len(self._buffers) >= BUFFERS_MAX:
                self._buffers.clear()
            first, units = self._buffers[queue] = (offset, queue.read(offset, READ_UNITS))
        at = (offset - first) * UNIT_BYTES
        return units[at : at + UNIT_BYTES]
