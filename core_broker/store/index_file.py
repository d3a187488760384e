"""An index file: finds messages by key through a hash table with chains (index_layout.py).

The slots of the newest file live in memory, since their writes go all over the table; a flush
writes the blocks that changed. Items are appended in blocks. Older files are read from disk.
"""

import mmap
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core_broker.errors import StoreCorrupt
from core_broker.store.files import File, Files
from core_broker.store.index_items import ENTRY_NUMBERS, SLOTS_PER_BLOCK, IndexEntries
from core_broker.store.index_items import add_items as plain_add_items
from core_broker.store.index_layout import HEADER, ITEM, SLOT, IndexLayout
from core_broker.store.key_search import ChainStart

try:
    from core_broker.kernel.index_items import add_items
    from core_broker.kernel.swapping import swapped
except ImportError:
    add_items, swapped = plain_add_items, None

#: Items in memory are written when there are so many bytes of them.
TAIL_BYTES_MAX = 3200 * ITEM.size
#: Changed blocks of slots are written so many at once. Without the kernel, turning their bytes
#: round keeps every other thread waiting; with it, only that they are many pieces does.
BLOCKS_PER_WRITE = 64 if swapped is None else 1024
_CHUNK_ITEMS = 3200
#: Blocks of slots as the file has them, each piece with the number of its first block.
SlotCopies = list[tuple[int, memoryview]]


class IndexFile:
    """One index file. Event loop only, but `copied_slots` and `write_slots`."""

    def __init__(self, path: Path, file: File, layout: IndexLayout) -> None:
        self.path = path
        self.file = file
        self.layout = layout
        self.slot_count = layout.slot_count
        self.item_max = layout.item_max
        self.begin_timestamp = 0
        self.end_timestamp = 0
        self.begin_physical = 0
        self.end_physical = 0
        self.slots_used = 0
        self.next_item = 1
        #: Of the machine's byte order; the memory of slots never used is never touched.
        self._slots: memoryview | None = None
        #: 1 for each block of slots that is not written.
        self._changed_blocks = bytearray(-(-self.slot_count // SLOTS_PER_BLOCK))
        #: While a flush runs: blocks that changed since it was taken, as they were then.
        self._before_flush: dict[int, bytes] | None = None
        self._tail = bytearray()
        self._tail_from = 1

    @property
    def is_full(self) -> bool:
        """No item fits any more."""
        return self.next_item >= self.item_max

    # -- life --

    def create(self, timestamp: int, offset_physical: int) -> None:
        """Lay out a new file that goes on where the one before ended."""
        self.file.truncate(0)
        self.file.truncate(self.layout.size)
        self.begin_timestamp = self.end_timestamp = timestamp
        self.begin_physical = self.end_physical = offset_physical
        self._slots = _empty_slots(self.slot_count)

    def load(self, actual_size: int) -> None:
        """Read the header; raises StoreCorrupt when this cannot be an index file of this layout."""
        size = self.layout.size
        if actual_size != size:
            reason = f"it has {actual_size} bytes, not {size} by maxHashSlotNum and maxIndexNum"
            raise StoreCorrupt(str(self.path), 0, reason)
        header = HEADER.unpack(self.file.pread(HEADER.size, 0))
        self.begin_timestamp, self.end_timestamp = header[:2]
        self.begin_physical, self.end_physical = header[2:4]
        self.slots_used = header[4]
        self.next_item = self._tail_from = max(1, header[5])
        if self.next_item > self.item_max or self.begin_physical > self.end_physical:
            raise StoreCorrupt(str(self.path), 0, "its header is not that of an index file")

    def open_slots(self) -> None:
        """Take the slots into memory: new items will be added."""
        if self._slots is None:
            data = self.file.pread(self.slot_count * SLOT.size, HEADER.size)
            self._slots = _empty_slots(self.slot_count)
            self._slots.cast("B")[:] = _swapped(memoryview(data).cast("i"))

    def close_slots(self) -> None:
        """Let the memory go: everything is written and no more items come."""
        self._slots = None

    # -- add --

    def add(self, entries: IndexEntries) -> int:
        """Add entries until the file is full; return how many.

        The caller has called `create` or `open_slots`.
        """
        assert self._slots is not None
        number = self.next_item
        if number == 1:
            _, self.begin_physical, self.begin_timestamp = entries[:ENTRY_NUMBERS]
        room = (self.item_max - number) * ENTRY_NUMBERS
        chosen = entries if len(entries) <= room else entries[:room]
        self.slots_used += add_items(
            chosen,
            self._slots,
            number,
            self.begin_timestamp,
            self._tail,
            self._changed_blocks,
            self._before_flush,
        )
        _, self.end_physical, self.end_timestamp = chosen[-ENTRY_NUMBERS:]
        count = len(chosen) // ENTRY_NUMBERS
        self.next_item = number + count
        return count

    # -- write --

    @property
    def tail_bytes(self) -> int:
        """Bytes of items that are only in memory."""
        return len(self._tail)

    def write_tail(self) -> None:
        """Write the items in memory; on OSError they stay there."""
        if self._tail:
            self.file.pwrite(self._tail, self.layout.item_at(self._tail_from))
            self._tail.clear()
            self._tail_from = self.next_item

    def take_changed_blocks(self) -> list[int]:
        """Return the blocks of slots to write and regard them as written; begins a flush."""
        changed = self._changed_blocks
        blocks = [block for block, is_changed in enumerate(changed) if is_changed]
        self._changed_blocks = bytearray(len(changed))
        self._before_flush = {}
        return blocks

    def end_flush(self) -> None:
        """The blocks that were taken are written, or that failed."""
        self._before_flush = None

    def mark_changed(self, blocks: list[int]) -> None:
        """Note blocks whose write failed."""
        for block in blocks:
            self._changed_blocks[block] = 1

    def copied_slots(self, blocks: list[int]) -> SlotCopies:
        """Copy blocks of slots as they were when the flush was taken; may run off the loop.

        Java takes a slot for empty that names an item behind those in the header, and with that
        would lose the chain.
        """
        if self._slots is None:
            return []
        copies = [
            (first, _swapped(self._slots[first * SLOTS_PER_BLOCK : end * SLOTS_PER_BLOCK]))
            for first, end in _runs(blocks)
        ]
        # What a copy has too new was noted before it changed; from here on nobody needs to.
        before, self._before_flush = self._before_flush or {}, None
        _take_back(copies, before)
        return copies

    def write_slots(self, copies: SlotCopies) -> None:
        """Write what was copied; may run off the loop."""
        for first, data in copies:
            self.file.pwrite(data, self.layout.slot_at(first * SLOTS_PER_BLOCK))

    def header(self) -> bytes:
        """The header as it is now."""
        return HEADER.pack(
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_physical,
            self.end_physical,
            self.slots_used,
            self.next_item,
        )

    # -- read --

    def chain_start(self, key_hash: int) -> ChainStart:
        """Return where a search for a hash begins, valid whatever is added later."""
        slots = self._slots
        return ChainStart(
            self.path,
            self.layout,
            self.begin_timestamp,
            self.next_item,
            slots[key_hash % self.slot_count] if slots is not None else None,
            bytes(self._tail),
            self._tail_from,
        )

    # -- recovery --

    def cut_physical(self, offset_physical: int) -> None:
        """Drop the items of messages at or behind an offset, and build the slots anew.

        Slots and header may be older or newer than the items, as a crash leaves them: only items
        count. The first one that makes no sense ends the file.
        """
        slots = self._slots = _empty_slots(self.slot_count)
        number, last_offset, last_seconds, used = 1, self.begin_physical, 0, 0
        for key_hash, offset, seconds, previous in self._items_on_disk():
            is_sound = key_hash >= 0 and offset >= last_offset and 0 <= previous < number
            if not is_sound or offset >= offset_physical or number >= self.next_item:
                break
            slot = key_hash % self.slot_count
            used += slots[slot] == 0
            slots[slot] = number
            number, last_offset, last_seconds = number + 1, offset, seconds
        self._tail.clear()
        self.next_item = self._tail_from = number
        self.slots_used = used
        self.end_physical = last_offset
        self.end_timestamp = self.begin_timestamp + last_seconds * 1000
        self.mark_changed(list(range(len(self._changed_blocks))))

    def _items_on_disk(self) -> Iterator[tuple[int, int, int, int]]:
        for first in range(1, self.item_max, _CHUNK_ITEMS):
            count = min(_CHUNK_ITEMS, self.item_max - first)
            yield from ITEM.iter_unpack(
                self.file.pread(count * ITEM.size, self.layout.item_at(first))
            )


def open_index_file(files: Files, path: Path, layout: IndexLayout) -> IndexFile:
    """Open or create the file under a path; it is not loaded yet."""
    return IndexFile(path, files.open(path, create=True), layout)


def _empty_slots(count: int) -> memoryview:
    """Zeros, in large pages where the system has some: keys touch slots all over the table."""
    memory = mmap.mmap(-1, count * SLOT.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without is no worse than before
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory).cast("i")


def _swapped(slots: memoryview) -> memoryview:
    """The bytes of slots, copied from the machine's byte order to that of the file or back."""
    if swapped is not None:
        return memoryview(swapped(slots))
    copy = array("i")
    copy.frombytes(slots.cast("B"))
    if sys.byteorder == "little":
        copy.byteswap()
    return memoryview(copy).cast("B")


def _take_back(copies: SlotCopies, before: dict[int, bytes]) -> None:
    """Let copies of blocks be as they were before."""
    firsts = [first for first, _ in copies]
    for block, slots in before.items():
        number = bisect_right(firsts, block) - 1
        if number < 0:
            continue
        first, data = copies[number]
        at = (block - first) * SLOTS_PER_BLOCK * SLOT.size
        if at < len(data):
            data[at : at + len(slots)] = _swapped(memoryview(slots).cast("i"))


def _runs(blocks: list[int]) -> Iterator[tuple[int, int]]:
    """Yield neighbouring blocks together, as first and end."""
    start = end = -1
    for block in blocks:
        if block != end or end - start >= BLOCKS_PER_WRITE:
            if end > start:
                yield start, end
            start = block
        end = block + 1
    if end > start:
        yield start, end
