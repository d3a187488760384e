"""A consume queue: where the messages of one queue of a topic lie in the commit log.

    consumequeue/TOPIC/QUEUE_ID/00000000000000000000, files of mappedFileSizeConsumeQueue bytes
    unit n, at byte 20 * n:   8 physical offset   4 size of the record   8 tags code

A unit counts when its offset is >= 0 and its size > 0. Blank units, of size 2^31-1, stand where a
queue begins in the middle of a file: (0, 2^31-1, 0). Compatible with RocketMQ's ConsumeQueue.

Units are kept in memory until a block of them is worth a write, or the store asks. They are
derived from the log, so nothing is lost with them.
"""

from collections.abc import Iterator
from pathlib import Path

from core_broker.errors import StoreCorrupt
from core_broker.store.files import File, Files
from core_broker.store.results import QueueUnit
from core_broker.store.segments import OpenFiles, list_segments, segment_path, zero_from
from core_broker.store.unit_layout import BLANK_SIZE, SIZE_AT, UNIT, UNIT_BYTES

_FIRST_BLANK = (0, BLANK_SIZE)
#: Units in memory are written when there are so many bytes of them.
TAIL_BYTES_MAX = 1000 * UNIT_BYTES
#: Units that are read at once; one pull rarely needs more.
READ_UNITS = 64
#: What a file that must be made first costs, in writes of units.
MAKING_COST = 20
#: Recovery looks at so many files from the end, as RocketMQ does.
RECOVERED_FILES = 3
_CHUNK_UNITS = 3200

_pack = UNIT.pack


class ConsumeQueue:
    """The units of one queue. Event loop only.

    min_offset ≤ max_offset ≤ next_offset are logical: the first unit whose message is still in the
    log, the end of what readers see, and the offset that the next message gets.
    """

    __slots__ = (
        "_appended_end",
        "_dirty_paths",
        "_files",
        "_folder",
        "_is_made",
        "_open_files",
        "_paths",
        "_tail",
        "_tail_from",
        "_units_per_file",
        "end_physical",
        "max_offset",
        "min_offset",
        "next_offset",
        "queue_id",
        "topic",
    )

    def __init__(
        self,
        files: Files,
        open_files: OpenFiles,
        folder: Path,
        file_size: int,
        dirty_paths: dict[Path, int],
    ) -> None:
        self.topic = folder.parent.name
        self.queue_id = int(folder.name)
        self.min_offset = 0
        self.max_offset = 0
        self.next_offset = 0
        #: End of the newest message in the log that has a unit here.
        self.end_physical = 0
        self._appended_end = 0
        #: Files of all queues that are not synced, with the bytes written since.
        self._dirty_paths = dirty_paths
        self._files = files
        self._open_files = open_files
        self._folder = folder
        self._is_made = False
        self._units_per_file = file_size // UNIT_BYTES
        self._paths: dict[int, Path] = {}
        self._tail = bytearray()
        self._tail_from = 0

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._folder

    # -- append --

    def append(self, offset_physical: int, size: int, tags_code: int) -> None:
        """Add the unit of the next message; it becomes visible with `publish`."""
        self._tail += _pack(offset_physical, size, tags_code)
        self._appended_end = offset_physical + size
        self.next_offset += 1

    def append_units(self, units: bytes, end_physical: int) -> None:
        """Add units made elsewhere; the message of the last one ends at `end_physical`."""
        self._tail += units
        self._appended_end = end_physical
        self.next_offset += len(units) // UNIT_BYTES

    def publish(self) -> int:
        """Let readers see what was appended; how many bytes of units are only in memory."""
        self.max_offset = self.next_offset
        self.end_physical = self._appended_end
        return len(self._tail)

    def rollback(self) -> None:
        """Forget what was appended since the last `publish`."""
        del self._tail[(self.max_offset - self._tail_from) * UNIT_BYTES :]
        self.next_offset = self.max_offset

    def start_at(self, offset: int) -> None:
        """Let the next message get `offset`: fill the gap behind the last unit with blanks.

        An empty queue begins in the file that holds this offset. Blanks behind a message keep its
        end as their offset, so that offsets rise along the queue.
        """
        if self.next_offset == 0 and not self._paths:
            self._tail_from = self.next_offset = offset - offset % self._units_per_file
        self._tail += _pack(self.end_physical, BLANK_SIZE, 0) * (offset - self.next_offset)
        self.next_offset = self.max_offset = offset
        if not self.end_physical:
            self.min_offset = offset

    @property
    def tail_bytes(self) -> int:
        """Bytes of units that are only in memory."""
        return len(self._tail)

    @property
    def write_cost(self) -> int:
        """How much work `write_tail` would be, in writes to a file that is there."""
        first = self._tail_from - self._tail_from % self._units_per_file
        return 1 if first in self._paths else MAKING_COST

    def write_tail(self) -> None:
        """Write the published units; on OSError they stay in memory and can be written again."""
        while self._tail_from < self.max_offset:
            within = self._tail_from % self._units_per_file
            count = min(self.max_offset - self._tail_from, self._units_per_file - within)
            size = count * UNIT_BYTES
            path = self._writable(self._tail_from - within)
            self._open_files.get(path).pwrite(self._tail[:size], within * UNIT_BYTES)
            self._dirty_paths[path] = self._dirty_paths.get(path, 0) + size
            del self._tail[:size]
            self._tail_from += count

    def _writable(self, first: int) -> Path:
        """Return the file that begins with unit `first`, created at full size when missing."""
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
        """Return the bytes of visible units from `offset` on, of one file or of memory at most."""
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
        """Yield up to `count` visible units from `offset` on, as plain tuples, which are quick."""
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
        """Return the file of a unit and its first byte there, for messages to the operator."""
        within = offset % self._units_per_file
        path = segment_path(self._folder, (offset - within) * UNIT_BYTES)
        return path, within * UNIT_BYTES

    def next_file_offset(self, offset: int) -> int:
        """Return the first offset of the file behind the one that holds `offset`."""
        return offset - offset % self._units_per_file + self._units_per_file

    def first_not_before(self, offset_physical: int, low: int, high: int) -> int:
        """Return the first unit in low … high - 1 whose message lies at or behind an offset.

        Returns `high` when there is none. Messages of a queue lie in the log in their order.
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
        self._tail_from = self.max_offset = self.next_offset = end
        last = self.unit(end - 1) if end > self.min_offset else None
        self.end_physical = 0
        if last is not None:
            size = 0 if last.size == BLANK_SIZE else last.size
            self.end_physical = last.offset_physical + size

    def cut_physical(self, offset_physical: int) -> None:
        """Drop the units of messages at or behind an offset of the log."""
        if self.end_physical > offset_physical:
            self.cut(self.first_not_before(offset_physical, self.min_offset, self.max_offset))

    def cut(self, offset: int) -> None:
        """Drop all units from a logical offset on, in the files too."""
        self.write_tail()
        within = offset % self._units_per_file
        for first in [each for each in sorted(self._paths, reverse=True) if each + within > offset]:
            self.forget(first)
            self._files.remove(segment_path(self._folder, first * UNIT_BYTES))
        path = self._paths.get(offset - within)
        if path is not None:
            size = self._units_per_file * UNIT_BYTES
            zero_from(self._open_files.get(path), within * UNIT_BYTES, size)
            self._dirty_paths[path] = self._dirty_paths.get(path, 0) + UNIT_BYTES
        begins_earlier = offset < self.min_offset
        self.min_offset = min(self.min_offset, offset)
        # With nothing left it begins anew, wherever `start_at` says.
        self._end_at(0 if begins_earlier else offset)

    # -- retention --

    def advance_min(self, min_physical: int) -> None:
        """Let the queue begin with the first message that is still in the log."""
        low = self.min_offset
        first = self.unit(low)
        if first is None or first.size == BLANK_SIZE or first.offset_physical < min_physical:
            found = self.first_not_before(min_physical, low, self.max_offset)
            # If the unit before is damaged it may have led too far: then those before it tell.
            while found - 2 >= low and self._lies_behind(found - 2, min_physical):
                found = self.first_not_before(min_physical, low, found - 2)
            self.min_offset = found

    def _lies_behind(self, offset: int, offset_physical: int) -> bool:
        unit = self.unit(offset)
        return unit is not None and unit.size != BLANK_SIZE and unit[0] >= offset_physical

    def removable(self) -> list[int]:
        """Return the first units of files that hold no message any more; never the last file."""
        firsts = sorted(self._paths)
        return [each for each in firsts[:-1] if each + self._units_per_file <= self.min_offset]

    def forget(self, first: int) -> Path:
        """Take the file beginning with unit `first` out of the queue; the caller removes it."""
        path = self._paths.pop(first)
        self._open_files.forget(path)
        self._dirty_paths.pop(path, None)
        return path

    def forget_all(self) -> None:
        """Let go of all files before the folder is moved away."""
        for first in list(self._paths):
            self.forget(first)


def _all_valid(units: bytes) -> bool:
    """Tell whether no offset is negative and every size positive, looking at all at once."""
    signs = max(units[0::UNIT_BYTES]) | max(units[SIZE_AT::UNIT_BYTES])
    sizes = 0
    for byte in range(SIZE_AT, SIZE_AT + 4):
        sizes |= int.from_bytes(units[byte::UNIT_BYTES], "big")
    return signs < 0x80 and 0 not in sizes.to_bytes(len(units) // UNIT_BYTES, "big")
