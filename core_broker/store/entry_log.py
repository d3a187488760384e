"""The entries of a DLedger commit log: their indexes, and the index files that find them.

    index/00000000000000000000   32 bytes per entry, 5,242,880 entries per file

    4 magic 1   8 position in the data files   4 size   8 index   8 term

The entry with index n is at byte 32·n. The data files are those of the commit log (framing.py).
Units are written after their entries, and synced before a checkpoint counts the entries. A start
after a crash writes the units of all entries behind the checkpoint again from the data files.
Files whose entries have all left the log are removed. Compatible with the index files of
DLedgerMmapFileStore of DLedger 0.3.1.2.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from core_broker.errors import StoreCorrupt
from core_broker.message.layout import Layout
from core_broker.store.files import File, Files
from core_broker.store.framing import (
    ENTRY_MAGIC,
    EntryPlace,
    Framing,
    encode_entry_header,
    parse_entry_header,
)
from core_broker.store.segments import NAME_DIGITS, segment_path, zero_from

INDEX_UNIT = Layout(("magic", "i"), ("position", "q"), ("size", "i"), ("index", "q"), ("term", "q"))
UNIT_BYTES = INDEX_UNIT.size
#: Size of an index file, bytes: DLedger's.
INDEX_FILE_BYTES = UNIT_BYTES * 5 * 1024 * 1024
#: Data files whose entries a start after a crash enters again, as in DLedger.
RECOVERED_SEGMENTS = 3
#: Size of one read of entries, bytes; units written at once.
CHUNK_BYTES = 4 * 1024 * 1024
UNITS_PER_WRITE = 8192

_UNIT = INDEX_UNIT.struct

log = logging.getLogger(__name__)


class LoadedLog(Protocol):
    """The recovered data files."""

    segment_size: int
    min_offset: int
    written: int
    framing: Framing

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; fewer than `size` at the end of segment or log."""

    def segment_end(self, offset: int) -> int:
        """Return the end of the segment that contains an offset."""

    def path_of(self, offset: int) -> Path:
        """Return the path of the segment that contains an offset."""


class EntryLog:
    """The indexes of the entries of a log. Event loop only; reads index files from the page cache.

    `load` comes after the recovery of the data files.
    """

    def __init__(self, files: Files, folder: Path, file_bytes: int = INDEX_FILE_BYTES) -> None:
        #: Index and term of the last written entry; -1 without entries.
        self.end_index = -1
        self.end_term = -1
        #: Term of the entries that `header` makes.
        self.term = 0
        self._files = files
        self._folder = folder
        self._file_bytes = file_bytes
        self._staged = bytearray()
        self._staged_end = (-1, -1)
        self._open: dict[int, File] = {}
        #: Start of the first file, bytes; None without files.
        self._first_file: int | None = None
        #: Files with units that are not synced.
        self._dirty: set[Path] = set()
        self._log: LoadedLog | None = None
        #: Start of the log, and index of its first entry.
        self._begin = (0, -1)

    # -- life --

    def load(self, data: LoadedLog, last_record: int, *, synced_until: int, is_clean: bool) -> None:
        """Find the last entry, and enter entries that the index lacks; waits for the disk.

        Units of entries before the log position `synced_until` are on the disk. Raises StoreCorrupt
        when the data files have a gap.
        """
        self.close()
        self._files.make_dir(self._folder)
        self._first_file = min(self._starts(), default=None)
        self._log = data
        self.end_index = self.end_term = -1
        if data.written > data.min_offset:
            self._recover(data, last_record, synced_until, is_clean=is_clean)
        self._staged_end = (self.end_index, self.end_term)
        self._cut_files(self.end_index + 1)
        self._begin = (data.min_offset, self._first_index(data))
        for path in self.forget_expired():
            self._files.remove(path)

    def _recover(
        self, data: LoadedLog, last_record: int, synced_until: int, *, is_clean: bool
    ) -> None:
        start = data.segment_end(data.written - 1) - data.segment_size
        last = last_record - data.framing.header_bytes
        if is_clean and last >= data.min_offset:
            header = self._header_at(data, last)
            if header is not None and self._unit(header.number) == header:
                self.end_index, self.end_term = header.number, header.term
                return
        synced = synced_until - synced_until % data.segment_size
        start = min(synced, start - (RECOVERED_SEGMENTS - 1) * data.segment_size)
        start = max(data.min_offset, start)
        first = self._header_at(data, start)
        if start > data.min_offset and (first is None or self._unit(first.number) != first):
            log.warning("The index of DLedger is written again from the whole commit log")
            start = data.min_offset
        self._enter_all(data, start)

    def _enter_all(self, data: LoadedLog, start: int) -> None:
        """Enter all entries from a position to the end of the log."""
        units, position, entries = bytearray(), start, 0
        chunk, base = b"", start
        while position < data.written:
            at = position - base
            left = data.segment_end(position) - position
            if at + data.framing.header_bytes > len(chunk):
                chunk, base, at = data.read(position, CHUNK_BYTES), position, 0
            if len(chunk) >= at + 8 and data.framing.is_blank(chunk, at, left):
                position += left
                chunk, base = b"", position
                continue
            header = parse_entry_header(chunk, at, position)
            if header is None or (entries and header.number != self.end_index + 1):
                raise StoreCorrupt(
                    str(data.path_of(position)),
                    position % data.segment_size,
                    f"no entry behind entry {self.end_index} of DLedger begins here; remove the"
                    " store of this member, and the group copies it anew",
                )
            self.end_index, self.end_term = header.number, header.term
            units += _UNIT.pack(ENTRY_MAGIC, position, header.size, header.number, header.term)
            entries += 1
            position += header.size
            if len(units) >= UNITS_PER_WRITE * UNIT_BYTES:
                self._write(self.end_index + 1 - len(units) // UNIT_BYTES, units)
                units = bytearray()
        self._write(self.end_index + 1 - len(units) // UNIT_BYTES, units)

    def _header_at(self, data: LoadedLog, position: int) -> EntryPlace | None:
        return parse_entry_header(data.read(position, data.framing.header_bytes), 0, position)

    def _first_index(self, data: LoadedLog) -> int:
        header = None if self.end_index < 0 else self._header_at(data, data.min_offset)
        return -1 if header is None else header.number

    def _cut_files(self, end: int) -> None:
        """Remove all units from the index `end` on: the index files end with the log."""
        last = end * UNIT_BYTES // self._file_bytes * self._file_bytes
        for start in reversed(self._starts()):
            if start > last:
                self._files.remove(self._forget(start))
            elif start == last:
                zero_from(self._file(start), end * UNIT_BYTES - start, self._file_bytes)
                self._dirty.add(segment_path(self._folder, start))

    def _starts(self) -> list[int]:
        """Return the first bytes of the files in the folder, in order."""
        names = self._files.names(self._folder)
        return [int(each) for each in names if len(each) == NAME_DIGITS and each.isdecimal()]

    def close(self) -> None:
        """Close the files."""
        while self._open:
            self._open.popitem()[1].close()

    # -- entries --

    @property
    def begin_index(self) -> int:
        """Index of the first entry of the log; -1 without entries."""
        data = self._log
        if data is None or self.end_index < 0:
            return -1
        if self._begin[1] < 0 or self._begin[0] != data.min_offset:
            self._begin = (data.min_offset, self._first_behind(data.min_offset))
        return self._begin[1]

    def place(self, index: int) -> EntryPlace:
        """Return the place of a written entry."""
        found = self._unit(index)
        if found is None or not 0 <= index <= self.end_index:
            raise self._lacks(index)
        return found

    def places(self, first: int, count: int) -> list[EntryPlace]:
        """Return up to `count` places from an entry of the log on, at least one."""
        at = first * UNIT_BYTES
        start = at - at % self._file_bytes
        count = min(
            count, self.end_index + 1 - first, (start + self._file_bytes - at) // UNIT_BYTES
        )
        has_units = count > 0 and self._has_file(start)
        data = self._file(start).pread(count * UNIT_BYTES, at - start) if has_units else b""
        units = _UNIT.iter_unpack(data[: len(data) // UNIT_BYTES * UNIT_BYTES])
        found = [
            EntryPlace(position, size, index, term) for _, position, size, index, term in units
        ]
        if not found or any(each.number != first + count for count, each in enumerate(found)):
            raise self._lacks(first)
        return found

    def _lacks(self, index: int) -> StoreCorrupt:
        start = index * UNIT_BYTES // self._file_bytes * self._file_bytes
        path = segment_path(self._folder, max(start, 0))
        return StoreCorrupt(str(path), index * UNIT_BYTES - start, f"it lacks entry {index}")

    def end_position(self, index: int) -> int:
        """Return the log position behind an entry; the start of the log for one before, and -1."""
        if index < max(self.begin_index, 0):
            return 0 if self._log is None else self._log.min_offset
        found = self.place(index)
        return found.position + found.size

    def _first_behind(self, position: int) -> int:
        """Return the first entry at or behind a position."""
        low, high = max(self._begin[1], 0), self.end_index
        while low < high:
            middle = (low + high) // 2
            unit = self._unit(middle)
            if unit is None or unit.position < position:
                low = middle + 1
            else:
                high = middle
        return low

    # -- writes --

    @property
    def has_staged(self) -> bool:
        """True while entries wait for `write_staged`."""
        return bool(self._staged)

    def header(self, position: int, record_bytes: int) -> bytes:
        """Stage the next entry of `term`; return its header."""
        index = self._staged_end[0] + 1
        encoded = encode_entry_header(index, self.term, position, record_bytes)
        self.stage((EntryPlace(position, len(encoded) + record_bytes, index, self.term),))
        return encoded

    def stage(self, places: Iterable[EntryPlace]) -> None:
        """Stage entries that are staged in the log; raises StoreCorrupt behind a gap."""
        for position, size, index, term in places:
            if index != self._staged_end[0] + 1 and self._staged_end[0] >= 0:
                self.discard_staged()
                raise self._lacks(index - 1)
            self._staged += _UNIT.pack(ENTRY_MAGIC, position, size, index, term)
            self._staged_end = (index, term)

    def write_staged(self) -> None:
        """Write the units of the staged entries, which are written."""
        if not self._staged:
            return
        first = self._staged_end[0] + 1 - len(self._staged) // UNIT_BYTES
        self._write(first, self._staged)
        self._staged = bytearray()
        self.end_index, self.end_term = self._staged_end

    def discard_staged(self) -> None:
        """Forget the staged entries."""
        self._staged = bytearray()
        self._staged_end = (self.end_index, self.end_term)

    # -- files --

    def take_dirty(self) -> set[Path]:
        """Return the files to sync before a checkpoint counts the written entries."""
        paths, self._dirty = self._dirty, set()
        return paths

    def mark_dirty(self, paths: Iterable[Path]) -> None:
        """Take files back whose sync failed."""
        self._dirty.update(paths)

    def forget_expired(self) -> list[Path]:
        """Remove the files whose entries have all left the log; the caller deletes the files."""
        if self._first_file is None or self.begin_index < 0:
            return []
        begin = self.begin_index * UNIT_BYTES // self._file_bytes * self._file_bytes
        expired = [
            self._forget(start)
            for start in range(self._first_file, begin, self._file_bytes)
            if self._has_file(start)
        ]
        self._first_file = max(self._first_file, begin)
        return expired

    def _forget(self, start: int) -> Path:
        path = segment_path(self._folder, start)
        self._dirty.discard(path)
        if start in self._open:
            self._open.pop(start).close()
        return path

    def _has_file(self, start: int) -> bool:
        if self._first_file is None or start < self._first_file:
            return False
        return start in self._open or self._files.exists(segment_path(self._folder, start))

    def _write(self, first: int, units: bytes | bytearray) -> None:
        at, done = first * UNIT_BYTES, 0
        while done < len(units):
            start = at - at % self._file_bytes
            count = min(len(units) - done, start + self._file_bytes - at)
            self._file(start).pwrite(memoryview(units)[done : done + count], at - start)
            self._dirty.add(segment_path(self._folder, start))
            at, done = at + count, done + count

    def _unit(self, index: int) -> EntryPlace | None:
        at = index * UNIT_BYTES
        start = at - at % self._file_bytes
        if index < 0 or not self._has_file(start):
            return None
        data = self._file(start).pread(UNIT_BYTES, at - start)
        if len(data) < UNIT_BYTES:
            return None
        magic, position, size, found, term = _UNIT.unpack(data)
        if magic != ENTRY_MAGIC or found != index:
            return None
        return EntryPlace(position, size, index, term)

    def _file(self, start: int) -> File:
        file = self._open.get(start)
        if file is None:
            path = segment_path(self._folder, start)
            is_new = not self._files.exists(path)
            file = self._open[start] = self._files.open(path, create=is_new)
            if self._files.size(path) != self._file_bytes:  # also after a crash at its creation
                file.truncate(self._file_bytes)
            self._first_file = start if self._first_file is None else min(start, self._first_file)
        return file
