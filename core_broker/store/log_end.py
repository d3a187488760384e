"""Finds the end of the commit log: a hole of unwritten sectors, or the last whole record.

Recovery may find invalid bytes before whole records. Either the bytes are damaged, and recovery
keeps the following records; or a power cut lost a write although later writes reached the disk. In
the second case no byte from the hole on was ever flushed, and recovery cuts the log there, so that
a power cut loses a tail and never a message between others.

Only a power cut leaves holes: the page cache keeps all writes of a killed process. Holes are whole
sectors of zeros, since segments contain zeros before the first write.
"""

from core_broker.message.record_layout import BLANK_BYTES, MAGIC_AT, RECORD_START
from core_broker.store.log_scan import SECTOR, LogRecord, LogScan, ReadableLog, find_record

#: Chunk size for scanning damage, bytes.
CHUNK_BYTES = 1024 * 1024


def next_whole_record(
    log: ReadableLog, start: int, end: int, *, check_crc: bool
) -> LogRecord | None:
    """Return the first whole record from `start` to `end`."""
    at = find_record(log, start, end)
    while at is not None:
        record = next(iter(LogScan(log, at, check_crc=check_crc)), None)
        if record is not None:
            return record
        at = find_record(log, at + 1, end)
    return None


def without_blank_end(log: ReadableLog, newest: int, end: int) -> int:
    """Return the end of the log without the blank end of a segment behind the newest record.

    A log of DLedger ends with an entry. A crash may come between the blank end of a segment and the
    next entry, and another leader may have a smaller entry that still fits there. A log without
    entries keeps its end.
    """
    if not log.framing.header_bytes or newest < 0 or end % log.segment_size:
        return end
    head = log.read(newest, BLANK_BYTES)
    last = newest + (RECORD_START.unpack_from(head)[0] if len(head) == BLANK_BYTES else 0)
    left = log.segment_size - last % log.segment_size
    head = log.read(last, BLANK_BYTES)
    is_blank = len(head) == BLANK_BYTES and log.framing.is_blank(head, 0, left)
    return last if is_blank and last + left == end else end


def is_hole(log: ReadableLog, start: int, end: int) -> bool:
    """Return whether a sector between a flaw and the next record was never written to the disk."""
    segment_end = start - start % log.segment_size + log.segment_size
    if segment_end <= end:
        blank = _blank_record(log, start, segment_end)
        return _has_hole(log, start, blank) or (
            segment_end < end and is_hole(log, segment_end, end)
        )
    return _has_hole(log, start, end)


def _has_hole(log: ReadableLog, start: int, end: int) -> bool:
    first_sector = min(end, start - start % SECTOR + SECTOR)
    head = log.read(start, first_sector - start)
    if head and not any(head) and (len(head) > MAGIC_AT or any(_size(end - start)[: len(head)])):
        return True  # a size may begin with zeros, the following magic does not
    at = first_sector
    # The next record may begin at the end of a lost sector: sizes begin with zeros.
    while at < end and (data := log.read(at, min(CHUNK_BYTES, _sectors(end - at)))):
        if any(not any(data[each : each + SECTOR]) for each in range(0, len(data), SECTOR)):
            return True
        at += _sectors(len(data))
    return False


def _sectors(size: int) -> int:
    return -(-size // SECTOR) * SECTOR


def _size(size: int) -> bytes:
    return size.to_bytes(4, "big")


def _blank_record(log: ReadableLog, start: int, segment_end: int) -> int:
    """Return the offset of the blank record of a segment, or the segment's end without one.

    The bytes behind a blank record were never written.
    """
    at = start
    while at < segment_end and (data := log.read(at, CHUNK_BYTES)):
        hit = log.framing.find_blank(data, 0)
        while 0 <= hit <= len(data) - BLANK_BYTES:
            if log.framing.is_blank(data, hit, segment_end - at - hit):
                return at + hit
            hit = log.framing.find_blank(data, hit + 1)
        at += max(1, len(data) - BLANK_BYTES)
    return segment_end
