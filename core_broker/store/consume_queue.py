"""A consume queue: the positions in the commit log of the messages of one queue of a topic.

    consumequeue/TOPIC/QUEUE_ID/00000000000000000000, files of mappedFileSizeConsumeQueue bytes
    unit n at byte 20 * n of the queue, see unit_layout.py

Compatible with RocketMQ's ConsumeQueue. Units stay in memory until TAIL_BYTES_MAX of them justify
a write, or until the store writes them. Losing units in memory loses no message, since units are
derived from the log.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.errors import StoreCorrupt
from core_broker.store.files import File, Files
from core_broker.store.full_disk import is_disk_full
from core_broker.store.known_codes import KnownCodes
from core_broker.store.results import QueueUnit
from core_broker.store.segments import OpenFiles, list_segments, segment_path, zero_from
from core_broker.store.unit_layout import BLANK_SIZE, SIZE_AT, UNIT, UNIT_BYTES

if TYPE_CHECKING:
    from core_broker.store.queue_tail import QueueTail
else:
    try:
        from core_broker.kernel.queue_tail import QueueTail
    except ImportError:
        from core_broker.store.queue_tail import QueueTail

_FIRST_BLANK = (0, BLANK_SIZE)
#: Size of the units in memory that triggers a write, bytes.
TAIL_BYTES_MAX = 1000 * UNIT_BYTES
#: Units per read; one pull rarely needs more.
READ_UNITS = 64
#: Cost of creating a file, in writes of units.
MAKING_COST = 20
#: Number of files, from the end, that recovery checks, as in RocketMQ.
RECOVERED_FILES = 3
_CHUNK_UNITS = 3200

_pack = UNIT.pack


class ConsumeQueue(QueueTail):
    """The units of one queue, in memory (queue_tail.py) and in files. Event loop only."""

    __slots__ = (
        "_dirty_paths",
        "_files",
        "_folder",
        "_is_made",
        "_open_files",
        "_paths",
        "_stale",
        "_units_per_file",
        "known_codes",
        "queue_id",
    )

    def __init__(
        self,
        files: Files,
        open_files: OpenFiles,
        folder: Path,
        file_size: int,
        dirty_paths: dict[Path, int],
    ) -> None:
        super().__init__(folder.parent.name)
        self.queue_id = int(folder.name)
        #: Tags codes of the queue that agreed with a record.
        self.known_codes = KnownCodes()
        #: Unsynced files of all queues, with the bytes written since the last sync.
        self._dirty_paths = dirty_paths
        self._files = files
        self._open_files = open_files
        self._folder = folder
        self._is_made = False
        self._units_per_file = file_size // UNIT_BYTES
        self._paths: dict[int, Path] = {}
        #: File and first byte of dropped units that a full disk could not overwrite with zeros.
        self._stale: tuple[Path, int] | None = None

    @property
    def folder(self) -> Path:
        """The folder of the queue's files."""
        return self._folder

    # -- append --

    def start_at(self, offset: int) -> None:
        """Make `offset` the next offset: fill the gap behind the last unit with blank units.

        An empty queue begins in the file that contains `offset`. Blank units behind a message have
        the end of the message as physical offset, so that offsets increase along the queue.
        """
        if self.next_offset == 0 and not self._paths:
            self._tail_from = self.next_offset = offset - offset % self._units_per_file
        self._tail += _pack(self.end_physical, BLANK_SIZE, 0) * (offset - self.next_offset)
        if self.max_offset == self.end_offset:
            self.max_offset = offset
        self.next_offset = self.end_offset = offset
        if not self.end_physical:
            self.min_offset = offset

    @property
    def tail_bytes(self) -> int:
        """Size of the units that are in memory only, bytes."""
        return len(self._tail)

    @property
    def is_unwritten(self) -> bool:
        """True until `write_tail` has made the files equal to the queue."""
        return bool(self._tail) or self._stale is not None

    @property
    def write_cost(self) -> int:
        """Cost of `write_tail`, in writes to an existing file."""
        first = self._tail_from - self._tail_from % self._units_per_file
        return 1 if first in self._paths else MAKING_COST

    def write_tail(self) -> None:
        """Write the published units; after OSError the units stay in memory for a retry."""
        self._zero_stale()
        while self._tail_from < self.end_offset:
            within = self._tail_from % self._units_per_file
            count = min(self.end_offset - self._tail_from, self._units_per_file - within)
            size = count * UNIT_BYTES
            path = self._writable(self._tail_from - within)
            self._open_files.get(path).pwrite(self._tail[:size], within * UNIT_BYTES)
            self._dirty_paths[path] = self._dirty_paths.get(path, 0) + size
            del self._tail[:size]
            self._tail_from += count

    def replace(self, offset: int, unit: bytes) -> None:
        """Overwrite one visible unit, which is damaged. Raises OSError."""
        if offset >= self._tail_from:
            at = (offset - self._tail_from) * UNIT_BYTES
            self._tail[at : at + UNIT_BYTES] = unit
        else:
            path, at = self.location_of(offset)
            self._open_files.get(path).pwrite(unit, at)
            self._dirty_paths[path] = self._dirty_paths.get(path, 0) + UNIT_BYTES

    def _writable(self, first: int) -> Path:
        """Return the file that begins with unit `first`; create a missing file at full size."""
        path = self._paths.get(first)
        if path is not None:
            return path
        if not self._is_made:
            self._files.make_dir(self._folder)
            self._is_made = True
        path = segment_path(self._folder, first * UNIT_BYTES)
        file = self._files.open(path, create=True)
        try:
            file.truncate(self._units_per_file * UNIT_BYTES)
        finally:
            file.close()
        self._paths[first] = path
        return path

    # -- read --

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes of up to `count` visible units, from one file or from memory."""
        count = min(count, self.max_offset - offset)
        if count <= 0:
            return b""
        if offset >= self._tail_from:
            at = (offset - self._tail_from) * UNIT_BYTES
            return bytes(self._tail[at : at + count * UNIT_BYTES])
        within = offset % self._units_per_file
        path = self._paths.get(offset - within)
        if path is None:
            return b""
        count = min(count, self._units_per_file - within, self._tail_from - offset)
        return bytes(self._open_files.read(path, count * UNIT_BYTES, within * UNIT_BYTES))

    def unit_tuples(self, offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Yield up to `count` visible units from `offset` on, as plain tuples for speed."""
        while count > 0 and (data := self.read(offset, min(count, READ_UNITS))):
            read = len(data) // UNIT_BYTES
            yield from UNIT.iter_unpack(data[: read * UNIT_BYTES])
            offset += read
            count -= read

    def units(self, offset: int, count: int) -> Iterator[QueueUnit]:
        """Yield up to `count` visible units from `offset` on."""
        return map(QueueUnit._make, self.unit_tuples(offset, count))

    def unit(self, offset: int) -> QueueUnit | None:
        """Return one visible unit."""
        return next(self.units(offset, 1), None)

    def tags_codes(self, offset: int, end: int) -> list[int]:
        """Return the tags codes of visible units."""
        return [code for _, _, code in self.unit_tuples(offset, end - offset)]

    def location_of(self, offset: int) -> tuple[Path, int]:
        """Return the file of a unit and the unit's first byte in the file, for error messages."""
        within = offset % self._units_per_file
        path = segment_path(self._folder, (offset - within) * UNIT_BYTES)
        return path, within * UNIT_BYTES

    def next_file_offset(self, offset: int) -> int:
        """Return the first offset of the file after the file that contains `offset`."""
        return offset - offset % self._units_per_file + self._units_per_file

    def first_not_before(self, offset_physical: int, low: int, high: int) -> int:
        """Return the first unit in low … high - 1 whose message is at or behind a physical offset.

        Returns `high` without such a unit. Physical offsets increase along a queue.
        """
        while low < high:
            middle = (low + high) // 2
            unit = self.unit(middle)
            if unit and unit[:2] != _FIRST_BLANK and unit.offset_physical >= offset_physical:
                high = middle
            else:
                low = middle + 1
        return low

    # -- recovery --

    def load(self) -> None:
        """Find the files and the last valid unit; raises StoreCorrupt when files are damaged."""
        per_file = self._units_per_file
        size = per_file * UNIT_BYTES
        starts = list_segments(self._files, self._folder, size, "mappedFileSizeConsumeQueue")
        self._paths = {each // UNIT_BYTES: segment_path(self._folder, each) for each in starts}
        self._is_made = True
        firsts = sorted(self._paths)
        self.min_offset = firsts[0] if firsts else 0
        self._check_full(firsts[:-1])
        end = self.min_offset
        for first in firsts[-RECOVERED_FILES:]:
            end = first + self._valid_units(self._open_files.get(self._paths[first]))
            if end < first + per_file:
                break
        self._end_at(end)

    def _check_full(self, firsts: list[int]) -> None:
        for first in firsts:
            path = self._paths[first]
            at = (self._units_per_file - 1) * UNIT_BYTES
            _, size, _ = UNIT.unpack(self._open_files.get(path).pread(UNIT_BYTES, at))
            if size <= 0:
                raise StoreCorrupt(str(path), at, "another file follows, but it is not full")

    def _valid_units(self, file: File) -> int:
        count = 0
        while count < self._units_per_file:
            wanted = min(_CHUNK_UNITS, self._units_per_file - count)
            data = file.pread(wanted * UNIT_BYTES, count * UNIT_BYTES)
            if _all_valid(data):
                count += wanted
                continue
            for offset, size, _ in UNIT.iter_unpack(data):
                if offset < 0 or size <= 0:
                    return count
                count += 1
        return count

    def _end_at(self, end: int) -> None:
        self._tail.clear()
        self._tail_from = end
        self._set_end(end)

    def _set_end(self, end: int) -> None:
        self.max_offset = self.end_offset = self.next_offset = end
        last = self.unit(end - 1) if end > self.min_offset else None
        self.end_physical = 0
        if last is not None:
            size = 0 if last.size == BLANK_SIZE else last.size
            self.end_physical = last.offset_physical + size

    def cut_physical(self, offset_physical: int) -> None:
        """Drop the units of messages at or behind a physical offset."""
        if self.end_physical > offset_physical:
            self.cut(self.first_not_before(offset_physical, self.min_offset, self.max_offset))

    def cut(self, offset: int) -> None:
        """Drop all units from a logical offset on, in memory and in the files.

        On a full disk the dropped units stay in the file until the next `write_tail`.
        """
        if max(self._tail_from, self.min_offset) <= offset:
            del self._tail[(offset - self._tail_from) * UNIT_BYTES :]
            self._set_end(offset)
            return
        within = offset % self._units_per_file
        for first in [each for each in sorted(self._paths, reverse=True) if each + within > offset]:
            self.forget(first)
            self._files.remove(segment_path(self._folder, first * UNIT_BYTES))
        path = self._paths.get(offset - within)
        if path is not None:
            self._stale = (path, within * UNIT_BYTES)
            try:
                self._zero_stale()
            except OSError as error:
                if not is_disk_full(error):
                    raise
        begins_earlier = offset < self.min_offset
        self.min_offset = min(self.min_offset, offset)
        # An empty queue begins again at the offset of the next `start_at`.
        self._end_at(0 if begins_earlier else offset)

    def _zero_stale(self) -> None:
        if self._stale is None:
            return
        path, start = self._stale
        zero_from(self._open_files.get(path), start, self._units_per_file * UNIT_BYTES)
        self._dirty_paths[path] = self._dirty_paths.get(path, 0) + UNIT_BYTES
        self._stale = None

    # -- retention --

    def advance_min(self, min_physical: int) -> None:
        """Advance min_offset to the first message that is in the log."""
        low = self.min_offset
        first = self.unit(low)
        if first is None or first.size == BLANK_SIZE or first.offset_physical < min_physical:
            found = self.first_not_before(min_physical, low, self.max_offset)
            # A damaged unit misleads the binary search; check the units before the result.
            while found - 2 >= low and self._lies_behind(found - 2, min_physical):
                found = self.first_not_before(min_physical, low, found - 2)
            self.min_offset = found

    def _lies_behind(self, offset: int, offset_physical: int) -> bool:
        unit = self.unit(offset)
        return unit is not None and unit.size != BLANK_SIZE and unit[0] >= offset_physical

    def removable(self) -> list[int]:
        """Return the first units of files without messages in the log; never the last file."""
        firsts = sorted(self._paths)
        return [each for each in firsts[:-1] if each + self._units_per_file <= self.min_offset]

    def forget(self, first: int) -> Path:
        """Remove the file that begins with unit `first`; the caller deletes the file."""
        path = self._paths.pop(first)
        if self._stale is not None and self._stale[0] == path:
            self._stale = None
        self._open_files.forget(path)
        self._dirty_paths.pop(path, None)
        return path

    def forget_all(self) -> None:
        """Close all files before the folder is moved."""
        for first in list(self._paths):
            self.forget(first)


def _all_valid(units: bytes) -> bool:
    """Return whether all offsets are >= 0 and all sizes > 0, without a loop over the units."""
    signs = max(units[0::UNIT_BYTES]) | max(units[SIZE_AT::UNIT_BYTES])
    sizes = 0
    for byte in range(SIZE_AT, SIZE_AT + 4):
        sizes |= int.from_bytes(units[byte::UNIT_BYTES], "big")
    return signs < 0x80 and 0 not in sizes.to_bytes(len(units) // UNIT_BYTES, "big")
