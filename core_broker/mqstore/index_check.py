"""Index files against the commit log, in one walk over the log.

Index items are in the order of the log: all index files are read once from the first item to the
last. Each record must have an item for each of its keys, and each item must belong to a record with
the item's key hash. The chains are built again and compared with slots and items. The slots of one
file are in memory.
"""

import errno
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core_broker.mqstore.context import VerificationContext
from core_broker.mqstore.folder import DataFile, read_range
from core_broker.store.index_items import SECONDS_MAX
from core_broker.store.index_layout import HEADER, ITEM, SLOT, IndexLayout
from core_broker.store.log_scan import LogRecord

#: Size of the read buffer, items.
READ_ITEMS = 4096
#: Lookahead behind a damaged item for items of the current record, items.
LOOK_AHEAD_ITEMS = 64
#: Batch size of the slot comparison, slots.
COMPARE_SLOTS = 64 * 1024
#: Maximum number of items of one record: Java's start after a crash indexes records again.
ITEMS_PER_RECORD_MAX = 100_000


class IndexHeader(NamedTuple):
    """The first 40 bytes of an index file."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical: int
    end_physical: int
    slots_used: int
    next_item: int


#: Key hash, physical offset, seconds after the file's begin time, previous item of the chain.
Item = tuple[int, int, int, int]
#: Physical offset and store time (ms) of a record.
RecordKey = tuple[int, int]


class IndexFileCheck:
    """One index file: header, a cursor over the items, and the slots built from the items."""

    def __init__(self, path: Path, layout: IndexLayout, context: VerificationContext) -> None:
        self.path = path
        self.next_number = 1
        self._context = context
        self._layout = layout
        self._slot_count = layout.slot_count
        self._slots = array("i", bytes(4 * layout.slot_count))
        self._items: list[Item] = []
        self._items_from = 1
        data = read_range(path, 0, HEADER.size)
        if len(data) < HEADER.size:
            raise OSError(errno.EIO, "the file ends within the header")
        self._header = IndexHeader._make(HEADER.unpack(data))
        self.end_number = self._header.next_item
        if (
            not 0 <= self.end_number <= layout.item_max
            or self._header.begin_physical > self._header.end_physical
        ):
            context.report.problem(path, 0, f"the header is inconsistent: {self._header}")
            self.end_number = min(max(1, self.end_number), layout.item_max)

    def peek(self, ahead: int = 0) -> Item | None:
        """Return the next item, or the item `ahead` positions later; None at the file's end."""
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

    def accept(self, item: Item, key_hash: int, store_timestamp: int) -> None:
        """Compare the next item with its record's hash, time and chain, and advance."""
        number = self.next_number
        slot = key_hash % self._slot_count
        item_hash, offset, seconds, previous = item
        if previous != self._slots[slot]:
            reason = f"its chain continues with item {previous}, not {self._slots[slot]}"
            self.problem(number, reason)
        # Java writes into a file's first item the time since the end of the previous file.
        if number > 1:
            elapsed_s = (store_timestamp - self._header.begin_timestamp) // 1000
            expected = min(max(elapsed_s, 0), SECONDS_MAX)
            if seconds != expected:
                reason = f"its time is {seconds} s, by the record at {offset} {expected}"
                self.problem(number, reason)
        if item_hash != key_hash:
            reason = f"its hash is {item_hash}, by the record at {offset} it is {key_hash}"
            self.problem(number, reason)
        self._slots[slot] = number
        self.next_number = number + 1

    def reject(self, item: Item) -> None:
        """Report the next item, which belongs to no record, and advance."""
        key_hash, offset, _, _ = item
        if not self._context.may_dangle(offset):
            reason = f"it points to {offset}, where no record has a key of hash {key_hash}"
            self.problem(self.next_number, reason)
        if key_hash >= 0:
            self._slots[key_hash % self._slot_count] = self.next_number
        self.next_number += 1

    def problem(self, number: int, reason: str) -> None:
        """Report a problem of an item."""
        at = self._layout.item_at(number)
        self._context.report.problem(self.path, at, f"item {number}: {reason}")

    def check_header(self, first: RecordKey, last: RecordKey) -> None:
        """Compare begin and end in the header with the records of the first and the last item."""
        header = self._header
        fields = (
            (16, "begin offset", header.begin_physical, first[0]),
            (0, "begin time", header.begin_timestamp, first[1]),
            (24, "end offset", header.end_physical, last[0]),
            (8, "end time", header.end_timestamp, last[1]),
        )
        for at, name, value, expected in fields:
            if value != expected:
                reason = f"the {name} is {value}, by the items it is {expected}"
                self._context.report.problem(self.path, at, reason)

    def check_slots(self) -> None:
        """Compare the slots with the chains of the items."""
        used = self._slot_count - self._slots.count(0)
        if used != self._header.slots_used:
            reason = (
                f"the header counts {self._header.slots_used} slots in use, the file has {used}"
            )
            self._context.report.problem(self.path, 32, reason)
        for first in range(0, self._slot_count, COMPARE_SLOTS):
            self._compare_slots(first, min(COMPARE_SLOTS, self._slot_count - first))

    def _compare_slots(self, first: int, count: int) -> None:
        at = self._layout.slot_at(first)
        built = self._slots[first : first + count]
        stored = array("i")
        data = read_range(self.path, at, count * SLOT.size)
        stored.frombytes(data[: len(data) - len(data) % SLOT.size])
        if sys.byteorder == "little":
            stored.byteswap()
        if stored == built:
            return
        for index, (actual, expected) in enumerate(zip(stored, built, strict=False)):
            if actual != expected:
                reason = f"slot {first + index}: its chain begins with {actual}, not {expected}"
                self._context.report.problem(self.path, at + index * SLOT.size, reason)


class IndexChecks:
    """All index files of a folder, as one sequence of items."""

    def __init__(
        self, files: list[DataFile], layout: IndexLayout, context: VerificationContext
    ) -> None:
        self._context = context
        self._layout = layout
        self._pending_paths = [file.path for file in files]
        self._file: IndexFileCheck | None = None
        #: Records of the first and the last item of the current file.
        self._first: RecordKey | None = None
        self._last: RecordKey | None = None
        #: Records without items after the last indexed record: first physical offset, and number.
        self._lagging_from = 0
        self._lagging = 0
        self._has_index = bool(files)
        self._next_file()

    def _finish(self, file: IndexFileCheck) -> None:
        """Check header and slots, unless a broker runs or was killed: brokers write both late."""
        if self._context.lag_from is None:
            if self._first is not None and self._last is not None:
                file.check_header(self._first, self._last)
            file.check_slots()

    def _next_file(self) -> None:
        self._file = self._first = self._last = None
        while self._pending_paths and self._file is None:
            path = self._pending_paths.pop(0)
            try:
                self._file = IndexFileCheck(path, self._layout, self._context)
            except OSError as error:
                reason = f"the file cannot be read: {error.strerror}"
                self._context.report.problem(path, 0, reason)

    def _peek(self) -> tuple[IndexFileCheck, Item] | None:
        """Return the next item of all files, None at the end."""
        while self._file is not None:
            try:
                item = self._file.peek()
                if item is not None:
                    return self._file, item
                self._finish(self._file)
            except OSError as error:
                reason = f"the file cannot be read: {error.strerror}"
                self._context.report.problem(self._file.path, 0, reason)
            self._next_file()
        return None

    def check(self, record: LogRecord, hashes: list[int]) -> None:
        """Check the items of a record against the hashes of the record's keys."""
        if not self._has_index:
            return
        offset = record.offset
        open_hashes = dict.fromkeys(hashes)
        accepted = 0
        while (following := self._peek()) is not None and accepted < ITEMS_PER_RECORD_MAX:
            file, item = following
            if item[1] > offset and open_hashes and self._has_item_ahead(file, offset):
                file.reject(item)
            elif item[1] > offset:
                break
            elif item[1] < offset or not hashes:
                file.reject(item)
            else:
                self._last = (offset, record.store_timestamp)
                if file.next_number == 1:
                    self._first = self._last
                self._match(file, item, open_hashes, record, hashes)
                accepted += 1
        self._context.report.counts["indexItems"] += accepted
        if accepted and self._lagging:
            self._end_lag()
        if open_hashes:
            self._missing(record, len(open_hashes))

    def _has_item_ahead(self, file: IndexFileCheck, offset: int) -> bool:
        """Return True when an item of the record at `offset` follows: the next item is damaged."""
        for ahead in range(1, LOOK_AHEAD_ITEMS):
            item = file.peek(ahead)
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
                file.reject(item)
                return
            key_hash = next(iter(open_hashes))
            del open_hashes[key_hash]
        file.accept(item, key_hash, record.store_timestamp)

    def _missing(self, record: LogRecord, count: int) -> None:
        if self._context.may_lag(record.offset):
            self._lagging_from = self._lagging_from if self._lagging else record.offset
            self._lagging += 1
        else:
            self._problem(f"{count} keys of the record at {record.offset} are not in the index")

    def _end_lag(self) -> None:
        """Report records without items: a later record is indexed, so the index does not lag."""
        reason = f"{self._lagging} records from {self._lagging_from} on are not in the index"
        self._problem(reason, self._lagging)
        self._lagging = 0

    def _problem(self, reason: str, times: int = 1) -> None:
        file = self._file
        path = file.path if file is not None else self._context.report.root / "index"
        self._context.report.problem(path, 0, reason, times)

    def finish(self) -> None:
        """Reject the items after the last record, and note an index that lags."""
        for file, item in self._rest():
            file.reject(item)
        if self._lagging:
            self._context.report.note(
                f"{self._lagging} records at the end are not in the index yet; a start adds them."
            )

    def _rest(self) -> Iterator[tuple[IndexFileCheck, Item]]:
        while (following := self._peek()) is not None:
            yield following
