"""How records lie in the files of the commit log: one behind the other, or as entries of DLedger.

    record | record | … | int bytes left, int 0xCBD43194 | end of segment
    entry  | entry  | … | int -1, int bytes left         | end of segment

    entry   4 magic 1   4 size: 48 + record   8 index   8 term   8 position in the log
            4 channel 0   4 chain checksum 0   4 body checksum 0   4 size of the record   record

A part of the log is a record, an entry or the blank end of a segment. The physical offset of a
record is that of its first byte, in an entry 48 bytes behind the entry's position; log positions
are those of entries. Compatible with RocketMQ's CommitLog, and with DLedgerEntryCoder of DLedger
0.3.1.2, which leaves both checksums 0.
"""

from typing import NamedTuple

from core_broker.message.layout import INT, Layout
from core_broker.message.record_layout import BLANK_MAGIC, RECORD_START

ENTRY_HEADER = Layout(
    ("magic", "i"),
    ("size", "i"),
    ("index", "q"),
    ("term", "q"),
    ("position", "q"),
    ("channel", "i"),
    ("chain_crc", "i"),
    ("body_crc", "i"),
    ("body_bytes", "i"),
)
#: Size of the header of an entry, bytes.
ENTRY_HEADER_BYTES = ENTRY_HEADER.size
ENTRY_MAGIC = 1
#: DLedger's limit for an entry with its header, bytes: the size of its encoding buffer.
ENTRY_BYTES_MAX = 4 * 1024 * 1024
#: Magic of the blank end of a segment with entries, as bytes.
ENTRY_BLANK = b"\xff\xff\xff\xff"

_HEADER = ENTRY_HEADER.struct
_ENTRY_START = ENTRY_HEADER.select("magic", "size")
_BLANK_MAGIC = BLANK_MAGIC.to_bytes(4, "big")


class EntryPlace(NamedTuple):
    """Where an entry lies, its index and its term."""

    position: int
    #: Bytes of header and record.
    size: int
    number: int
    term: int


def encode_entry_header(index: int, term: int, position: int, body_bytes: int) -> bytes:
    """Return the header of an entry."""
    size = ENTRY_HEADER_BYTES + body_bytes
    return _HEADER.pack(ENTRY_MAGIC, size, index, term, position, 0, 0, 0, body_bytes)


def parse_entry_header(data: bytes | bytearray, at: int, position: int) -> EntryPlace | None:
    """Return the entry of a log position at `at` of `data`; None for other bytes."""
    if len(data) < at + ENTRY_HEADER_BYTES:
        return None
    magic, size, index, term, found, _, _, _, body_bytes = _HEADER.unpack_from(data, at)
    if magic != ENTRY_MAGIC or found != position or size != ENTRY_HEADER_BYTES + body_bytes:
        return None
    return EntryPlace(position, size, index, term) if index >= 0 and term >= 0 else None


class Framing:
    """Records one behind the other."""

    #: Bytes before each record.
    header_bytes = 0

    def blank(self, left: int) -> bytes:
        """Return the beginning of the blank end of a segment, `left` bytes before its end."""
        return RECORD_START.pack(left, BLANK_MAGIC)

    def is_blank(self, data: bytes | bytearray, at: int, left: int) -> bool:
        """Return whether the blank end of a segment begins at `at` of `data`."""
        return RECORD_START.unpack_from(data, at) == (left, BLANK_MAGIC)

    def part_bytes(self, data: bytes | bytearray, at: int) -> int:
        """Return the size of a part by its first 8 bytes; 0 for unwritten bytes."""
        return int(INT.unpack_from(data, at)[0])

    def flaw(self, data: bytes | bytearray, at: int, position: int) -> str:
        """Return why no record of a log position can begin at `at`, "" when one can."""
        return ""

    def find_blank(self, data: bytes | bytearray, start: int) -> int:
        """Return the next position in `data` that may begin the blank end of a segment, or -1."""
        hit = data.find(_BLANK_MAGIC, start + 4)
        return hit - 4 if hit >= 0 else -1


class EntryFraming(Framing):
    """Entries of DLedger, one record in each."""

    header_bytes = ENTRY_HEADER_BYTES

    def blank(self, left: int) -> bytes:
        """Return DLedger's blank."""
        return ENTRY_BLANK + INT.pack(left)

    def is_blank(self, data: bytes | bytearray, at: int, left: int) -> bool:
        """Return whether DLedger's blank begins at `at` of `data`."""
        return data[at : at + 8] == self.blank(left)

    def part_bytes(self, data: bytes | bytearray, at: int) -> int:
        """Return the size of an entry or blank by its first 8 bytes."""
        return int(_ENTRY_START.unpack_from(data, at)[1])

    def flaw(self, data: bytes | bytearray, at: int, position: int) -> str:
        """Return why no entry of a log position begins at `at`, "" when one does."""
        header = parse_entry_header(data, at, position)
        if header is None:
            return "no entry of DLedger begins here"
        (record_bytes,) = INT.unpack_from(data, at + ENTRY_HEADER_BYTES)
        if header.size != ENTRY_HEADER_BYTES + record_bytes:
            return f"the entry has {header.size} bytes, its record {record_bytes}"
        return ""

    def find_blank(self, data: bytes | bytearray, start: int) -> int:
        """Return the next position in `data` that may begin DLedger's blank, or -1."""
        return data.find(ENTRY_BLANK, start)


RECORDS = Framing()
ENTRIES = EntryFraming()
