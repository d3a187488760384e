"""Scan commit log files record by record, in any condition.

A record contains its own position in the log, so a scan can start anywhere: the next offset with
consistent size, magic, position and checksum is a record. Non-zero bytes between records are
damage; the scan reports and skips them. Zeros, and the blank record at the end of a file, are no
damage.
"""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import error
from typing import Any, Final, NamedTuple

from core_broker.errors import ClientError, ProtocolError
from core_broker.message.record import body_crc, decode_record
from core_broker.message.record_layout import (
    BLANK_MAGIC,
    MAGIC_AT,
    RECORD_BYTES_MIN,
    RECORD_MAGIC_V1,
    RECORD_MAGIC_V2,
    RECORD_MAGICS,
    RECORD_START,
    V6_HOSTS,
)
from spark_jobs.sources.options import TIME_MS_MAX
from spark_jobs.sources.record_heads import (
    BODY_BYTES,
    BODY_CRC,
    BORN_TIMESTAMP,
    HEAD,
    MAGIC,
    PHYSICAL_OFFSET,
    STORE_SIZE,
    STORE_TIMESTAMP,
    SYS_FLAG,
    head_of_message,
)

_MAGIC: Final = re.compile(
    re.escape(RECORD_MAGIC_V1.to_bytes(4, "big"))
    + b"|"
    + re.escape(RECORD_MAGIC_V2.to_bytes(4, "big"))
)
_MAGIC_BYTES: Final = 4
#: Maximum record size, bytes; a larger size field counts as damage.
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
#: Bytes of a file that are searched for a record at once.
SEARCH_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(SEARCH_BYTES + _MAGIC_BYTES - 1)
_NAME: Final = re.compile(r"\d{20}")


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A slice of one file: the records that begin from `start` up to and without `end`."""

    path: str
    #: Log position of the first byte of the file.
    base: int
    start: int
    end: int


class ScannedRecord(NamedTuple):
    """A record: offset in its file, head in the layout of `record_heads.HEAD`, body and topic."""

    at: int
    head: tuple[Any, ...]
    body: bytes
    topic: bytes


class Damage(NamedTuple):
    """A damaged range, by its position in the log."""

    position: int
    bytes: int


def log_slices(folder: Path, bytes_max: int) -> list[LogSlice]:
    """The slices of a store folder, or of its commitlog folder, with at most `bytes_max` bytes
    each.

    Raises ClientError when there is no commit log.
    """
    log = folder / "commitlog" if (folder / "commitlog").is_dir() else folder
    files = sorted(p for p in log.glob("[0-9]*") if _NAME.fullmatch(p.name) and p.is_file())
    if not files:
        raise ClientError(f"path {folder} holds no commit log: no files named by 20 digits.")
    slices = []
    for path in files:
        size = path.stat().st_size
        count = max(1, -(-size // bytes_max))
        slices += [
            LogSlice(str(path), int(path.name), size * i // count, size * (i + 1) // count)
            for i in range(count)
        ]
    return slices


def scan(part: LogSlice, log: mmap.mmap, *, check_crc: bool) -> Iterator[ScannedRecord | Damage]:
    """The records that begin in the slice, and the damaged ranges between records, in order."""
    scanner = _Scanner(part, log, check_crc)
    # Not beyond the slice: many slices share the zeros that a broker writes to a file in advance.
    at = scanner.next_record(part.start, part.end) if part.start else 0
    while at < part.end:
        record = scanner.record(at)
        if record is not None:
            yield record
            at += record.head[STORE_SIZE]
            continue
        if scanner.is_blank(at):
            return
        following = scanner.next_record(at, len(log))
        lost = scanner.used_bytes(at, following)
        if lost:
            yield Damage(part.base + at, lost)
        at = following


class _Scanner:
    def __init__(self, part: LogSlice, log: mmap.mmap, check_crc: bool) -> None:
        self._base = part.base
        self._log = log
        self._check_crc = check_crc

    def record(self, at: int) -> ScannedRecord | None:
        """The record at a file offset; None when there is no valid record."""
        log = self._log
        try:
            head = HEAD.unpack_from(log, at)
        except error:
            return None
        size, magic = head[STORE_SIZE], head[MAGIC]
        if magic not in RECORD_MAGICS or head[PHYSICAL_OFFSET] != self._base + at:
            return None
        if not RECORD_BYTES_MIN <= size <= min(RECORD_BYTES_MAX, len(log) - at):
            return None
        if not (0 <= head[BORN_TIMESTAMP] <= TIME_MS_MAX):  # no checksum covers the head
            return None
        if magic == RECORD_MAGIC_V2 or head[SYS_FLAG] & V6_HOSTS:
            return self._decoded(at, size)
        body_at, body_end = at + HEAD.size, at + HEAD.size + head[BODY_BYTES]
        if body_end + 3 > at + size:
            return None
        topic_end = body_end + 1 + log[body_end]
        properties_bytes = int.from_bytes(log[topic_end : topic_end + 2], "big")
        body = log[body_at:body_end]
        if topic_end + 2 + properties_bytes != at + size:
            return None
        if not 0 <= head[STORE_TIMESTAMP] <= TIME_MS_MAX:
            return None
        if self._check_crc and body_crc(body) != head[BODY_CRC]:
            return None
        return ScannedRecord(at, head, body, log[body_end + 1 : topic_end])

    def _decoded(self, at: int, size: int) -> ScannedRecord | None:
        """A record with IPv6 hosts or a long topic."""
        try:
            message = decode_record(self._log[at : at + size], check_crc=self._check_crc)
        except ProtocolError:
            return None
        if not 0 <= message.store_timestamp <= TIME_MS_MAX:
            return None
        return ScannedRecord(at, head_of_message(message), message.body, message.topic.encode())

    def next_record(self, at: int, end: int) -> int:
        """Offset of the first valid record that begins from `at` up to `end`; `end` when there is
        none.
        """
        for begin in range(at, end, SEARCH_BYTES):
            first, after = begin + MAGIC_AT, min(begin + SEARCH_BYTES, end) + MAGIC_AT
            searched = self._log[first : after + _MAGIC_BYTES - 1]
            if _is_zero(searched):
                continue
            for match in _MAGIC.finditer(searched):
                found = begin + match.start()
                if self.record(found) is not None:
                    return found
        return end

    def is_blank(self, at: int) -> bool:
        """Whether the file is marked as ended at this offset."""
        try:
            _, magic = RECORD_START.unpack_from(self._log, at)
        except error:
            return True
        return bool(magic == BLANK_MAGIC)

    def used_bytes(self, at: int, end: int) -> int:
        """Number of bytes without the zeros at the end of the range."""
        while end > at:
            begin = max(at, end - SEARCH_BYTES)
            searched = self._log[begin:end]
            if not _is_zero(searched):
                return begin + len(searched.rstrip(b"\0")) - at
            end = begin
        return 0


def _is_zero(data: bytes) -> bool:
    """Whether all bytes are 0; at most SEARCH_BYTES bytes and a magic.

    A comparison takes a hundredth of the time of a search.
    """
    return data == _ZEROS[: len(data)]
