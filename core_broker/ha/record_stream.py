"""Splits the bytes of a master's commit log into whole records. Pure.

A packet of a master begins and ends anywhere, also within a record. A slave writes whole records
only, so that its log always ends with a record: after a crash there is nothing to repair, and a
report never covers half a record.
"""

from typing import NamedTuple

from core_broker.ha.faults import DamagedStream
from core_broker.message.record_layout import (
    BLANK_BYTES,
    BLANK_MAGIC,
    RECORD_BYTES_MIN,
    RECORD_MAGICS,
    RECORD_START,
)
from core_broker.store.log_scan import Flaw, parse_record
from core_broker.store.plain_records import LogPart, PlainRecordScan

#: Maximum size of one record, and of the blank end of a segment, bytes. An incomplete record is
#: kept in memory.
RECORD_BYTES_MAX = 64 * 1024 * 1024


class Stretch(NamedTuple):
    """Consecutive bytes of one segment."""

    offset: int
    data: bytes
    #: The records in `data`, in order; empty for the blank end of a segment.
    records: list[LogPart]


class RecordStream:
    """Keeps the incomplete record at the end of the received bytes.

    `is_compiled` false parses every record in Python.
    """

    __slots__ = ("_needed", "_rest", "_scan", "_segment_size", "_start")

    def __init__(self, start: int, segment_size: int, *, is_compiled: bool = True) -> None:
        self._scan = PlainRecordScan(is_compiled=is_compiled)
        #: Offset of the first kept byte.
        self._start = start
        self._segment_size = segment_size
        self._rest = bytearray()
        self._needed = BLANK_BYTES

    @property
    def end(self) -> int:
        """Offset of the next byte."""
        return self._start + len(self._rest)

    def feed(self, data: bytes) -> list[Stretch]:
        """Return the records completed by `data`, the bytes at `end`, in order.

        Raises DamagedStream when no record can begin where one must; the stream is then unusable.
        """
        self._rest += data
        if len(self._rest) < self._needed:
            return []
        kept = bytes(self._rest)
        stretches: list[Stretch] = []
        records: list[LogPart] = []
        begin = at = 0
        while True:
            plain = self._scan.find(kept, at, self._start + at, self._left(self._start + at))
            if plain is not None:
                records.append(plain)
                at += plain.size
                continue
            self._needed = self._size_at(kept, at)
            if self._needed > len(kept) - at:
                break
            offset, size = self._start + at, self._needed
            if RECORD_START.unpack_from(kept, at)[1] == BLANK_MAGIC:
                if at > begin:
                    stretches.append(Stretch(self._start + begin, kept[begin:at], records))
                begin, records = at + size, []
                stretches.append(Stretch(offset, kept[at:begin], []))
            else:
                record = parse_record(kept, at, offset, check_crc=False)
                if isinstance(record, Flaw):
                    raise DamagedStream(offset, record.reason)
                records.append(record)
            at += size
        if at > begin:
            stretches.append(Stretch(self._start + begin, kept[begin:at], records))
        del self._rest[:at]
        self._start += at
        return stretches

    def _size_at(self, data: bytes, at: int) -> int:
        """Return the number of bytes that the next record needs; checks the record's start."""
        if len(data) - at < BLANK_BYTES:
            return BLANK_BYTES
        size, magic = RECORD_START.unpack_from(data, at)
        offset = self._start + at
        left = self._left(offset)
        if magic == BLANK_MAGIC:
            if size != left:
                raise DamagedStream(
                    offset,
                    f"the master ends a segment {size} bytes further on, this broker {left};"
                    " mappedFileSizeCommitLog must be equal on both",
                )
        elif magic not in RECORD_MAGICS:
            raise DamagedStream(offset, f"no record begins there, the magic is {magic:#010x}")
        elif not RECORD_BYTES_MIN <= size <= left - BLANK_BYTES:
            raise DamagedStream(
                offset,
                f"a record of {size} bytes cannot lie there, {left} bytes before the end of the"
                " segment; mappedFileSizeCommitLog must be equal on both brokers",
            )
        if size > RECORD_BYTES_MAX:
            raise DamagedStream(
                offset, f"a record of {size} bytes; a slave accepts {RECORD_BYTES_MAX} at most"
            )
        return int(size)

    def _left(self, offset: int) -> int:
        return self._segment_size - offset % self._segment_size
