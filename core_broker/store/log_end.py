"""Where the commit log ends: at a tail that did not reach the disk, or only with its last record.

Recovery meets something that is no record although whole records follow. Either it is damage, and
what follows must be kept; or the power went, and the disk has later writes but not this one. Then
everything from here on was never flushed, and is cut off, so that what is lost is a tail and never
something in between.

Only a power cut leaves such holes: what a killed process wrote is whole in the memory of the
operating system. Holes are whole sectors of zeros, since segments are filled with zeros before they
are written.
"""

from core_broker.message.record_layout import BLANK_BYTES, BLANK_MAGIC, MAGIC_AT, RECORD_START
from core_broker.store.log_scan import SECTOR, LogRecord, LogScan, ReadableLog, find_record

#: Damage is looked at in pieces of this size.
CHUNK_BYTES = 1024 * 1024

_BLANK_MAGIC = BLANK_MAGIC.to_bytes(4, "big")


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


def is_hole(log: ReadableLog, start: int, end: int) -> bool:
    """Tell whether something between a flaw and the next record never reached the disk."""
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
        return True  # a size may begin with zeros, the magic behind it does not
    at = first_sector
    # The next record may begin at the end of a sector that was lost: sizes begin with zeros.
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
    """Return where the blank record of a segment begins, the end of the segment without one.

    What lies behind it was never written.
    """
    at = start
    while at < segment_end and (data := log.read(at, CHUNK_BYTES)):
        hit = data.find(_BLANK_MAGIC, MAGIC_AT)
        while hit >= 0:
            blank = at + hit - MAGIC_AT
            if RECORD_START.unpack_from(data, hit - MAGIC_AT)[0] == segment_end - blank:
                return blank
            hit = data.find(_BLANK_MAGIC, hit + 1)
        at += max(1, len(data) - BLANK_BYTES)
    return segment_end
