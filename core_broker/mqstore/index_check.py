"""Index files against the commit log, in one walk over the log.

Items lie in the order of the log, so all index files are read once from the first item to the last.
Each record must have an item for each of its keys, each item belongs to a record with that key, and
the chains are built again and compared with slots and items. The slots of one file are in memory.
"""

import errno
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core_broker.mqstore.folder import DataFile, read_range
from core_broker.mqstore.queue_check import Circumstances
from core_broker.store.index_items import SECONDS_MAX
from core_broker.store.index_layout import HEADER, ITEM, SLOT, IndexLayout
from core_broker.store.log_scan import LogRecord

#: Items that are in memory at a time.
READ_ITEMS = 4096
#: How far a damaged item may hide that the right ones follow.
LOOK_AHEAD_ITEMS = 64
#: Slots that are compared at a time.
COMPARE_SLOTS = 64 * 1024
#: A record may be indexed again by the start after a crash, as Java does; bounds its items.
ITEMS_PER_RECORD_MAX = 100_000


class IndexHeader(NamedTuple):
    """The first 40 bytes of an index file."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical: int
    end_physical: int
    slots_used: int
    next_item: int


#: Key hash, physical offset, seconds behind the begin of the file, previous item.
Item = tuple[int, int, int, int]
#: Physical offset and store time of a record.
Place = tuple[int, int]


class IndexFileCheck:
    """One index file: its header, its items one after another, its slots."""

    def __init__(self, path: Path, layout: IndexLayout, shared: Circumstances) -> None:
        self.path = path
        self.next_number = 1
        self._shared = shared
        self._layout = layout
        self._slot_count = layout.slot_count
        self._slots = array("i", bytes(4 * layout.slot_count))
        self._items: list[Item] = []
        self._items_from = 1
        data = read_range(path, 0, HEADER.size)
        if len(data) < HEADER.size:
            raise OSError(errno.EIO, "it ends within its header")
        self._header = IndexHeader._make(HEADER.unpack(data))
        self.end_number = self._header.next_item
        if (
            not 0 <= self.end_number <= layout.item_max
            or self._header.begin_physical > self._header.end_physical
        ):
            shared.report.problem(path, 0, f"the header cannot be right: {self._header}")
            self.end_number = min(max(1, self.end_number), layout.item_max)

    def look(self, ahead: int = 0) -> Item | None:
        """Return the next item, or one behind it; None at the end of the file."""
        number = self.next_number + ahead
        if number >= self.end_number:
            return None
        at = number - self._items_from
        if not 0 <= at < len(self._items):
            self._load(self.next_number)
            at = ahead
        return self._items[at] if at < len(self._items) else None

    def _load(self, number: int) -> None:
        count = min(READ_ITEMS, self.end_number - number)
        data = read_range(self.path, self._layout.item_at(number), count * ITEM.size)
        whole = len(data) - len(data) % ITEM.size
        self._items, self._items_from = list(ITEM.iter_unpack(data[:whole])), number

    def take(self, item: Item, key_hash: int, store_timestamp: int) -> None:
        """Go on behind the next item, which should have this hash; look at time and chain."""
        number = self.next_number
        slot = key_hash % self._slot_count
        found_hash, offset, seconds, previous = item
        if previous != self._slots[slot]:
            reason = f"its chain goes on with item {previous}, not {self._slots[slot]}"
            self.problem(number, reason)
        # Java gives the first item of a file the time since the end of the file before.
        if number > 1:
            right = min(
                max((store_timestamp - self._header.begin_timestamp) // 1000, 0), SECONDS_MAX
            )
            if seconds != right:
                self.problem(number, f"its time is {seconds} s, by the record at {offset} {right}")
        if found_hash != key_hash:
            reason = f"its hash is {found_hash}, by the record at {offset} it is {key_hash}"
            self.problem(number, reason)
        self._slots[slot] = number
        self.next_number = number + 1

    def drop(self, item: Item) -> None:
        """Go on behind the next item, which belongs to no record."""
        key_hash, offset, _, _ = item
        if not self._shared.is_excused(offset):
            reason = f"it points to {offset}, where no record has a key of hash {key_hash}"
            self.problem(self.next_number, reason)
        if key_hash >= 0:
            self._slots[key_hash % self._slot_count] = self.next_number
        self.next_number += 1

    def problem(self, number: int, reason: str) -> None:
        """Report an item."""
        at = self._layout.item_at(number)
        self._shared.report.problem(self.path, at, f"item {number}: {reason}")

    def check_header(self, first: Place, last: Place) -> None:
        """Compare the ends in the header with the records of the first and the last item.

        Each is the physical offset and the store time of a record.
        """
        found = self._header
        places = (
            (16, "begin offset", found.begin_physical, first[0]),
            (0, "begin time", found.begin_timestamp, first[1]),
            (24, "end offset", found.end_physical, last[0]),
            (8, "end time", found.end_timestamp, last[1]),
        )
        for at, name, value, right in places:
            if value != right:
                reason = f"the {name} is {value}, by the items it is {right}"
                self._shared.report.problem(self.path, at, reason)

    def check_slots(self) -> None:
        """Compare the slots with the chains of the items."""
        used = self._slot_count - self._slots.count(0)
        if used != self._header.slots_used:
            reason = f"the header counts {self._header.slots_used} slots in use, there are {used}"
            self._shared.report.problem(self.path, 32, reason)
        for first in range(0, self._slot_count, COMPARE_SLOTS):
            self._compare_slots(first, min(COMPARE_SLOTS, self._slot_count - first))

    def _compare_slots(self, first: int, count: int) -> None:
        at = self._layout.slot_at(first)
        right = self._slots[first : first + count]
        found = array("i")
        data = read_range(self.path, at, count * SLOT.size)
        found.frombytes(data[: len(data) - len(data) % SLOT.size])
        if sys.byteorder == "little":
            found.byteswap()
        if found == right:
            return
        for index, (is_there, should_be) in enumerate(zip(found, right, strict=False)):
            if is_there != should_be:
                reason = f"slot {first + index}: its chain begins with {is_there}, not {should_be}"
                self._shared.report.problem(self.path, at + index * SLOT.size, reason)


class IndexChecks:
    """All index files of a folder, as one sequence of items."""

    def __init__(self, files: list[DataFile], layout: IndexLayout, shared: Circumstances) -> None:
        self._shared = shared
        self._layout = layout
        self._waiting = [each.path for each in files]
        self._file: IndexFileCheck | None = None
        #: Of the file being read: where its first and last item come from.
        self._first: Place | None = None
        self._last: Place | None = None
        #: Records without items that may be the end of what is indexed: the first, and how many.
        self._lagging_from = 0
        self._lagging = 0
        self._is_there = bool(files)
        self._next_file()

    def _finish(self, file: IndexFileCheck) -> None:
        """Look at what a broker writes late, unless one runs, or a start will write it anew."""
        if self._shared.lag_from is None:
            if self._first is not None and self._last is not None:
                file.check_header(self._first, self._last)
            file.check_slots()

    def _next_file(self) -> None:
        self._file = self._first = self._last = None
        while self._waiting and self._file is None:
            path = self._waiting.pop(0)
            try:
                self._file = IndexFileCheck(path, self._layout, self._shared)
            except OSError as error:
                reason = f"the file cannot be read: {error.strerror}"
                self._shared.report.problem(path, 0, reason)

    def _look(self) -> tuple[IndexFileCheck, Item] | None:
        """Return the next item of all files."""
        while self._file is not None:
            try:
                item = self._file.look()
                if item is not None:
                    return self._file, item
                self._finish(self._file)
            except OSError as error:
                reason = f"the file cannot be read: {error.strerror}"
                self._shared.report.problem(self._file.path, 0, reason)
            self._next_file()
        return None

    def check(self, record: LogRecord, hashes: list[int]) -> None:
        """Look for the items of a record with these keys."""
        if not self._is_there:
            return
        offset = record.offset
        open_hashes = dict.fromkeys(hashes)
        taken = 0
        while (found := self._look()) is not None and taken < ITEMS_PER_RECORD_MAX:
            file, item = found
            if item[1] > offset and open_hashes and self._follows(file, offset):
                file.drop(item)
            elif item[1] > offset:
                break
            elif item[1] < offset or not hashes:
                file.drop(item)
            else:
                self._last = (offset, record.store_timestamp)
                if file.next_number == 1:
                    self._first = self._last
                self._match(file, item, open_hashes, record, hashes)
                taken += 1
        self._shared.report.figures["indexItems"] += taken
        if taken and self._lagging:
            self._end_lag()
        if open_hashes:
            self._missing(record, len(open_hashes))

    def _follows(self, file: IndexFileCheck, offset: int) -> bool:
        """Tell whether an item of this record comes soon, so that the next one is damaged."""
        for ahead in range(1, LOOK_AHEAD_ITEMS):
            item = file.look(ahead)
            if item is None:
                return False
            if item[1] == offset:
                return True
        return False

    def _match(
        self,
        file: IndexFileCheck,
        item: Item,
        open_hashes: dict[int, None],
        record: LogRecord,
        hashes: list[int],
    ) -> None:
        key_hash = item[0]
        if key_hash in open_hashes:
            del open_hashes[key_hash]
        elif key_hash not in hashes:
            if not open_hashes:
                file.drop(item)
                return
            key_hash = next(iter(open_hashes))
            del open_hashes[key_hash]
        file.take(item, key_hash, record.store_timestamp)

    def _missing(self, record: LogRecord, count: int) -> None:
        if self._shared.may_lag(record.offset):
            self._lagging_from = self._lagging_from if self._lagging else record.offset
            self._lagging += 1
        else:
            self._problem(f"{count} keys of the record at {record.offset} are not in the index")

    def _end_lag(self) -> None:
        """A later record is indexed, so those before it were left out."""
        reason = f"{self._lagging} records from {self._lagging_from} on are not in the index"
        self._problem(reason, self._lagging)
        self._lagging = 0

    def _problem(self, reason: str, times: int = 1) -> None:
        file = self._file
        path = file.path if file is not None else self._shared.report.root / "index"
        self._shared.report.problem(path, 0, reason, times)

    def finish(self) -> None:
        """Judge the items behind the last record."""
        for file, item in self._rest():
            file.drop(item)
        if self._lagging:
            self._shared.report.note(
                f"{self._lagging} records at the end are not in the index yet; a start adds them."
            )

    def _rest(self) -> Iterator[tuple[IndexFileCheck, Item]]:
        while (found := self._look()) is not None:
            yield found
