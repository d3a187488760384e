"""Segments of the log on disk: append-only files, each synced before its entries are reported.

    segment := header, frames                       file name: 20 digits, counting from 1
    header  := magic "GRS1", crc32, base index (8), base term (8)
    frame   := magic "GRF1", crc32, length (4), chain (4), payload    one write and one sync each
    payload := MessagePack array of entries

All numbers are big-endian. A CRC covers everything behind itself; `chain` is the CRC of the frame
or header before. The base is the last entry before the segment: when the log read so far does not
have the base, the log begins anew behind the base. A frame replaces the entries from its first
index on, so nothing on disk is ever cut or overwritten while the node runs.

A frame is written only after the sync of the frame before. So an unreadable frame at the
end of the last segment, with no readable frame behind, is the torn end of an unfinished write and
is cut. Other unreadable bytes are damage, and the node refuses to start.
"""

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from core_broker.errors import StoreCorrupt
from core_broker.raft.model import Entry

_HEADER = struct.Struct(">4sIQQ")
_FRAME = struct.Struct(">4sIII")
_HEADER_MAGIC = b"GRS1"
_FRAME_MAGIC = b"GRF1"
#: Bytes before those that a CRC covers: magic and CRC.
_COVERED_AT = 8

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


def segment_name(number: int) -> str:
    """Return the file name of a segment."""
    return f"{number:020d}"


def encode_header(base_index: int, base_term: int) -> tuple[bytes, int]:
    """Return the header of a segment, and its CRC."""
    return _sealed(_HEADER.pack(_HEADER_MAGIC, 0, base_index, base_term))


def encode_frame(entries: tuple[Entry, ...], chain: int) -> tuple[bytes, int]:
    """Return the frame of entries, and its CRC."""
    payload = _encode(entries)
    return _sealed(_FRAME.pack(_FRAME_MAGIC, 0, len(payload), chain) + payload)


def _sealed(data: bytes) -> tuple[bytes, int]:
    crc = zlib.crc32(data[_COVERED_AT:])
    return data[:4] + crc.to_bytes(4, "big") + data[_COVERED_AT:], crc


@dataclass(slots=True)
class Segment:
    """The readable content of one segment."""

    base_index: int
    base_term: int
    #: Length of the readable part, bytes, and the CRC of its last frame or header.
    end: int
    chain: int
    frames: list[list[Entry]] = field(default_factory=list)
    #: Start of the last frame or of the header.
    last_start: int = 0

    @property
    def max_index(self) -> int:
        """Highest index of an entry, replaced or not."""
        return max((frame[-1].index for frame in self.frames), default=self.base_index)


def read_segment(data: bytes, path: Path, *, is_last: bool) -> Segment | None:
    """Read a segment; None for a last segment whose creation was not finished.

    Raises StoreCorrupt for damage. The caller cuts the file at `end`.
    """
    segment = _read_header(data)
    if segment is None:
        _check_torn(data, 0, path, is_last=is_last)
        return None
    while segment.end < len(data):
        frame = _read_frame(data, segment.end)
        if frame is None:
            _check_torn(data, segment.end, path, is_last=is_last)
            break
        entries, chain, crc, end = frame
        if chain != segment.chain:
            raise StoreCorrupt(str(path), segment.end, "the frame does not follow the frame before")
        segment.frames.append(entries)
        segment.last_start, segment.end, segment.chain = segment.end, end, crc
    return segment


def _read_header(data: bytes) -> Segment | None:
    if len(data) < _HEADER.size:
        return None
    magic, crc, base_index, base_term = _HEADER.unpack_from(data)
    if magic != _HEADER_MAGIC or crc != zlib.crc32(data[_COVERED_AT : _HEADER.size]):
        return None
    return Segment(base_index, base_term, _HEADER.size, crc)


def _read_frame(data: bytes, at: int) -> tuple[list[Entry], int, int, int] | None:
    """Return entries, chain, CRC and end of a frame; None for an unreadable frame."""
    if at + _FRAME.size > len(data):
        return None
    magic, crc, length, chain = _FRAME.unpack_from(data, at)
    end = at + _FRAME.size + length
    if magic != _FRAME_MAGIC or end > len(data):
        return None
    if crc != zlib.crc32(memoryview(data)[at + _COVERED_AT : end]):
        return None
    try:
        entries = _decode(memoryview(data)[at + _FRAME.size : end])
    except msgspec.DecodeError:
        return None
    return (entries, chain, crc, end) if entries else None


def _check_torn(data: bytes, at: int, path: Path, *, is_last: bool) -> None:
    """Raise StoreCorrupt unless an unreadable place can be the end of an unfinished write."""
    if not is_last:
        raise StoreCorrupt(str(path), at, "the segment is damaged before the end of the log")
    later = data.find(_FRAME_MAGIC, at + 1)
    while later >= 0:
        if _read_frame(data, later) is not None:
            raise StoreCorrupt(
                str(path), at, f"the frame is damaged, and a readable frame follows at {later}"
            )
        later = data.find(_FRAME_MAGIC, later + 1)
