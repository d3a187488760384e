"""Plain records, found by the compiled scan: whole runs of messages in place of single records.

The kernel scans received bytes (core_broker/kernel/plain_records.py) where it is compiled. A run
enters its queue at once. Where a queue expects other offsets, the records are parsed one by one, as
all records are without the kernel.
"""

from collections.abc import Iterator
from typing import NamedTuple

from core_broker.message.record_layout import RECORD_START
from core_broker.store.log_scan import Flaw, LogRecord, parse_record

try:
    from core_broker.kernel.plain_records import PlainScan
except ImportError:
    PlainScan = None


class QueueRun(NamedTuple):
    """Consecutive messages of one queue."""

    topic: str
    queue_id: int
    #: Queue offset of the first message.
    queue_offset: int
    #: First and last byte of the units in `PlainRecords.units`.
    units_begin: int
    units_end: int
    #: Log offset behind the last record.
    end: int


class PlainRecords(NamedTuple):
    """Records that follow each other in the log, with their units and index entries."""

    #: Log offset of the first record.
    offset: int
    size: int
    #: Log offset and store time of the last record.
    newest: int
    store_timestamp: int
    runs: list[QueueRun]
    units: bytes
    #: Entries of all keys in log order, 64 bits each number (index_items.py).
    entries: bytes
    #: Bytes that contain the records from `at` on.
    data: bytes
    at: int

    def records(self) -> Iterator[LogRecord]:
        """Parse the records one by one."""
        at, end = self.at, self.at + self.size
        while at < end:
            record = parse_record(self.data, at, self.offset + at - self.at, check_crc=False)
            assert not isinstance(record, Flaw)  # the scan has checked the same
            yield record
            at += RECORD_START.unpack_from(self.data, at)[0]


#: A part of the log in its order: one record of any kind, or several plain ones.
LogPart = LogRecord | PlainRecords


class PlainRecordScan:
    """Finds plain records; finds none without the compiled kernel, or when switched off."""

    def __init__(self, *, is_compiled: bool = True) -> None:
        self._scan = PlainScan().scan if is_compiled and PlainScan is not None else None

    def find(self, data: bytes, at: int, offset: int, left: int) -> PlainRecords | None:
        """Return the plain records from `at` of `data` on, whose log offset is `offset`.

        They end before the first other or incomplete record, `left` bytes before the end of the
        segment at the latest, or after a number of records. None when the first one is not plain.
        """
        found = self._scan(data, at, offset, left) if self._scan is not None else None
        if found is None:
            return None
        size, newest, store_timestamp, runs, units, entries = found
        return PlainRecords(
            *(offset, size, newest, store_timestamp, [QueueRun(*run) for run in runs]),
            *(units, entries, data, at),
        )


def newest_of(part: LogPart) -> int:
    """Return the log offset of the last record of a part."""
    return part.newest if isinstance(part, PlainRecords) else part.offset
