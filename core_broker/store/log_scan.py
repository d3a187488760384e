"""Scans the commit log record by record, for recovery and verification.

A record is valid when magic and lengths are right, the stored physical offset equals the position
(which excludes records from an earlier use of the file), the body matches its checksum, and no
part is missing. Compatible with RocketMQ's CommitLog.checkMessageAndReturnSize, and stricter.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol
from zlib import crc32

from core_broker.message import sysflag
from core_broker.message.layout import INT, LONG, SHORT
from core_broker.message.record_layout import (
    BLANK_BYTES,
    BODY_LENGTH_AT,
    CRC_MASK,
    HEAD,
    MAGIC_AT,
    PHYSICAL_OFFSET_AT,
    RECORD_BYTES_MIN,
    RECORD_MAGIC_V1,
    RECORD_MAGICS,
    RECORD_START,
    STORE_TIMESTAMP_AT,
    V6_EXTRA_BYTES,
    V6_HOSTS,
)
from core_broker.store.consume_queues import is_folder_name
from core_broker.store.framing import Framing

#: Size of one read, bytes.
CHUNK_BYTES = 4 * 1024 * 1024
#: Unit that a disk writes atomically, bytes.
SECTOR = 512

_START = HEAD.select(
    *("store_size", "magic", "body_crc", "queue_id", "queue_offset", "physical_offset"),
    "sys_flag",
)
#: Common prefix of both magics.
_MAGIC_START = RECORD_MAGIC_V1.to_bytes(4, "big")[:3]


class ReadableLog(Protocol):
    """The log of a running store, or of a store folder without a broker."""

    segment_size: int
    framing: Framing

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; fewer than `size` at the end of segment or log."""

    def next_data(self, offset: int) -> int:
        """Return the next offset in the segment that may hold non-zero bytes, or its end."""


class LogRecord(NamedTuple):
    """The fields of a record that queues and index need."""

    offset: int
    size: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    topic: str
    properties: bytes


class Flaw(NamedTuple):
    """Offset and reason of invalid bytes in a scan."""

    offset: int
    reason: str


def parse_record(data: bytes, at: int, offset: int, *, check_crc: bool) -> LogRecord | Flaw:
    """Parse the record at `at` of `data`, whose log offset is `offset`.

    `data` contains the whole record; the caller has checked size and magic.
    """
    size, magic, crc, queue_id, queue_offset, physical, flags = _START.unpack_from(data, at)
    if physical != offset:
        return Flaw(offset, f"a record of offset {physical} lies here")
    if queue_id < 0 or not 0 <= queue_offset <= offset // RECORD_BYTES_MIN:
        return Flaw(offset, f"it cannot be message {queue_offset} of queue {queue_id}")
    stored_at = at + STORE_TIMESTAMP_AT + (V6_EXTRA_BYTES if flags & sysflag.BORN_HOST_V6 else 0)
    (store_timestamp,) = LONG.unpack_from(data, stored_at)
    body_at = at + BODY_LENGTH_AT + V6_EXTRA_BYTES * (flags & V6_HOSTS).bit_count()
    end = at + size
    topic_at = body_at + 4 + INT.unpack_from(data, body_at)[0]
    if topic_at + 3 > end:
        return Flaw(offset, "the body runs past the record")
    if magic == RECORD_MAGIC_V1:
        text_at, topic_bytes = topic_at + 1, data[topic_at]
    else:
        text_at, topic_bytes = topic_at + 2, SHORT.unpack_from(data, topic_at)[0]
    properties_at = text_at + topic_bytes + 2
    if properties_at > end or properties_at + SHORT.unpack_from(data, properties_at - 2)[0] != end:
        return Flaw(offset, "its lengths do not add up to its size")
    if store_timestamp <= 0:
        return Flaw(offset, "it has no store timestamp")
    if check_crc and crc32(memoryview(data)[body_at + 4 : topic_at]) & CRC_MASK != crc:
        return Flaw(offset, "its body does not match the checksum")
    try:
        topic = data[text_at : properties_at - 2].decode()
    except UnicodeDecodeError:
        topic = ""
    if not is_folder_name(topic):
        return Flaw(offset, "its topic is damaged")
    properties = data[properties_at:end]
    return LogRecord(
        offset, size, queue_id, queue_offset, flags, store_timestamp, topic, properties
    )


def looks_torn(data: bytes, record: LogRecord, at: int) -> bool:
    """Return whether properties end in a zero byte, are no text, or span a sector of zeros.

    The checksum covers the body only, so zeros are the sign of unwritten properties.
    """
    if record.properties.endswith(b"\0") or not _is_text(record.properties):
        return True
    end = at + record.size
    start = end - len(record.properties)
    while start < end:
        stop = min(end, start + SECTOR - (record.offset - at + start) % SECTOR)
        if not any(data[start:stop]):
            return True
        start = stop
    return False


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class LogScan:
    """Iterates over the records from `start` on; `end` and `flaw` say where and why it stopped."""

    def __init__(self, log: ReadableLog, start: int, *, check_crc: bool) -> None:
        self.end = start
        #: The reason of the stop; None when only zeros follow.
        self.flaw: Flaw | None = None
        self._log = log
        self._framing = log.framing
        self._check_crc = check_crc

    def __iter__(self) -> Iterator[LogRecord]:
        data, base = b"", self.end
        framing, header_bytes = self._framing, self._framing.header_bytes
        while True:
            at = self.end - base
            # `data` must contain the whole part before parsing.
            if at + BLANK_BYTES > len(data) or at + framing.part_bytes(data, at) > len(data):
                data, base, at = self._read(), self.end, 0
                if len(data) < BLANK_BYTES:
                    return
            if framing.is_blank(data, at, self._left()):
                self.end += self._left()
                data, base = b"", self.end
                continue
            if not any(data[at : at + BLANK_BYTES]):
                return
            found = self._record(data, at)
            if found is None:
                return
            self.end += header_bytes + found.size
            yield found

    def _record(self, data: bytes, at: int) -> LogRecord | None:
        part_bytes, header_bytes = self._framing.part_bytes(data, at), self._framing.header_bytes
        least = RECORD_BYTES_MIN + header_bytes
        if not least <= part_bytes <= min(self._left() - BLANK_BYTES, len(data) - at):
            self.flaw = Flaw(self.end, f"a record of {part_bytes} bytes cannot lie here")
            return None
        if reason := self._framing.flaw(data, at, self.end):
            self.flaw = Flaw(self.end, reason)
            return None
        at += header_bytes
        _, magic = RECORD_START.unpack_from(data, at)
        if magic not in RECORD_MAGICS:
            self.flaw = Flaw(self.end, f"no record begins here, the magic is {magic:#010x}")
        else:
            found = parse_record(data, at, self.end + header_bytes, check_crc=self._check_crc)
            if isinstance(found, Flaw):
                self.flaw = found
            elif looks_torn(data, found, at) and not self._is_followed(found):
                self.flaw = Flaw(self.end, "a part of its properties did not reach the disk")
            else:
                return found
        return None

    def _is_followed(self, record: LogRecord) -> bool:
        """Return whether another record follows; then a client sent the zeros in the properties."""
        end, header_bytes = record.offset + record.size, self._framing.header_bytes
        head = self._log.read(end, header_bytes + STORE_TIMESTAMP_AT)
        left = self._log.segment_size - end % self._log.segment_size
        if len(head) >= BLANK_BYTES and self._framing.is_blank(head, 0, left):
            return True
        if len(head) < header_bytes + STORE_TIMESTAMP_AT:
            return False
        _, magic = RECORD_START.unpack_from(head, header_bytes)
        (physical,) = LONG.unpack_from(head, header_bytes + PHYSICAL_OFFSET_AT)
        return magic in RECORD_MAGICS and physical == end + header_bytes

    def _left(self) -> int:
        return self._log.segment_size - self.end % self._log.segment_size

    def _read(self) -> bytes:
        data = self._log.read(self.end, CHUNK_BYTES)
        if len(data) >= BLANK_BYTES:
            part_bytes = self._framing.part_bytes(data, 0)
            if len(data) < part_bytes <= self._left():
                data = self._log.read(self.end, part_bytes)
        return data


def find_record(log: ReadableLog, start: int, end: int) -> int | None:
    """Return the first position from `start` to `end` with a record of that physical offset.

    Readers use it to skip damage in the middle of the log.
    """
    at, header_bytes = start, log.framing.header_bytes
    while at < end and (data := log.read(at, CHUNK_BYTES)):
        if not any(data[:SECTOR]) and (following := log.next_data(at)) > at + len(data):
            # Skip the unwritten part of a segment. A record's first bytes may be zeros.
            at = following - BLANK_BYTES
            continue
        hit = data.find(_MAGIC_START, header_bytes + MAGIC_AT)
        while hit >= 0:
            offset = at + hit - MAGIC_AT
            stored_at = hit - MAGIC_AT + PHYSICAL_OFFSET_AT
            if data[stored_at : stored_at + LONG.size] == LONG.pack(offset):
                position = offset - header_bytes
                return position if position < end else None
            hit = data.find(_MAGIC_START, hit + 1)
        # The chunk may end within the head of a record.
        overlap = header_bytes + STORE_TIMESTAMP_AT
        at += len(data) - (overlap if len(data) > overlap else 0)
    return None
