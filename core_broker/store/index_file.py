"""An index file: finds messages by key through a hash table with chains (index_layout.py).

The slots of the newest file are kept in memory, since new keys change slots all over the table.
Changed blocks of slots are written a share at a time. Items are appended in blocks. Older files are
read from disk.
"""

import mmap
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from core_broker.errors import StoreCorrupt
from core_broker.store.files import File, Files
from core_broker.store.index_items import ENTRY_NUMBERS, SLOTS_PER_BLOCK, IndexEntries
from core_broker.store.index_items import add_items as plain_add_items
from core_broker.store.index_layout import HEADER, ITEM, SLOT, IndexLayout
from core_broker.store.key_search import ChainStart

try:
    from core_broker.kernel.index_items import add_items
    from core_broker.kernel.swapping import swap_into
except ImportError:
    add_items, swap_into = plain_add_items, None

#: Size of the items in memory that triggers a write, bytes.
TAIL_BYTES_MAX = 3200 * ITEM.size
#: Maximum number of changed blocks of slots per write; bounds the memory of the copy. Without the
#: kernel, byte-swapping holds the GIL, so the blocks of one write are fewer.
BLOCKS_PER_WRITE = 64 if swap_into is None else 256
_CHUNK_ITEMS = 3200
#: Blocks of slots in the file's byte order, each run with the number of its first block.
SlotCopies = list[tuple[int, memoryview]]


class IndexFile:
    """One index file. Event loop only, except `write_blocks` and `write_slots`."""

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
        #: Slots in the machine's byte order; memory of unused slots is never touched.
        self._slots: memoryview | None = None
        #: 1 for each changed block of slots.
        self._changed_blocks = bytearray(-(-self.slot_count // SLOTS_PER_BLOCK))
        #: The first block of the next share.
        self._next_block = 0
        self._tail = bytearray()
        self._tail_from = 1

    @property
    def is_full(self) -> bool:
        """The file has its maximum number of items."""
        return self.next_item >= self.item_max

    # -- life --

    def create(self, timestamp: int, offset_physical: int) -> None:
        """Initialize a new file, starting at the end of the previous file."""
        self.file.truncate(0)
        self.file.truncate(self.layout.size)
        self.begin_timestamp = self.end_timestamp = timestamp
        self.begin_physical = self.end_physical = offset_physical
        self._slots = _empty_slots(self.slot_count)

    def load(self, actual_size: int) -> None:
        """Read the header; raises StoreCorrupt when size or header do not fit the layout."""
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
        """Load the slots into memory, before new items are added."""
        if self._slots is None:
            data = self.file.pread(self.slot_count * SLOT.size, HEADER.size)
            self._slots = _empty_slots(self.slot_count)
            self._slots.cast("B")[:] = _swapped(memoryview(data).cast("i"))

    def close_slots(self) -> None:
        """Free the slots: the file is full and flushed."""
        self._slots = None

    # -- add --

    def add(self, entries: IndexEntries) -> int:
        """Add entries until the file is full; return the number of added entries.

        The caller has called `create` or `open_slots`.
        """
        assert self._slots is not None
        number = self.next_item
        if number == 1:
            self.begin_physical, self.begin_timestamp = entries[1], entries[2]
        capacity = (self.item_max - number) * ENTRY_NUMBERS
        chosen = entries if len(entries) <= capacity else entries[:capacity]
        self.slots_used += add_items(
            chosen,
            self._slots,
            number,
            self.begin_timestamp,
            self._tail,
            self._changed_blocks,
        )
        self.end_physical, self.end_timestamp = chosen[-2], chosen[-1]
        count = len(chosen) // ENTRY_NUMBERS
        self.next_item = number + count
        return count

    # -- write --

    @property
    def tail_bytes(self) -> int:
        """Size of the items that are in memory only, bytes."""
        return len(self._tail)

    def write_tail(self) -> None:
        """Write the items in memory; after OSError the items stay in memory."""
        if self._tail:
            self.file.pwrite(self._tail, self.layout.item_at(self._tail_from))
            self._tail.clear()
            self._tail_from = self.next_item

    @property
    def has_changed_blocks(self) -> bool:
        """Slots in memory differ from the file."""
        return 1 in self._changed_blocks

    @property
    def block_count(self) -> int:
        """Number of blocks of slots."""
        return len(self._changed_blocks)

    def take_changed_blocks(self, count_max: int | None = None) -> list[int]:
        """Return changed blocks of slots, in order, and mark the blocks as written.

        At most `count_max`; the next call goes on behind the last block.
        """
        changed = self._changed_blocks
        after_last = chain(range(self._next_block, len(changed)), range(self._next_block))
        found = list(islice((block for block in after_last if changed[block]), count_max))
        for block in found:
            changed[block] = 0
        self._next_block = found[-1] + 1 if found else 0
        return sorted(found)

    def mark_changed(self, blocks: list[int]) -> None:
        """Mark blocks whose write failed as changed."""
        for block in blocks:
            self._changed_blocks[block] = 1

    def copied_slots(self, blocks: list[int]) -> SlotCopies:
        """Copy blocks of slots."""
        return list(self._copies(blocks))

    def write_slots(self, copies: Iterable[tuple[int, memoryview]]) -> None:
        """Write copied blocks; may run off the loop."""
        for first, data in copies:
            self.file.pwrite(data, self.layout.slot_at(first * SLOTS_PER_BLOCK))

    def write_blocks(self, blocks: list[int]) -> None:
        """Write blocks of slots that nobody changes meanwhile; may run off the loop."""
        self.write_slots(self._copies(blocks))

    def _copies(self, blocks: list[int]) -> Iterator[tuple[int, memoryview]]:
        slots = self._slots
        if slots is not None:
            for first, end in _runs(blocks):
                yield first, _swapped(slots[first * SLOTS_PER_BLOCK : end * SLOTS_PER_BLOCK])

    def header(self) -> bytes:
        """The current header, encoded."""
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
        """Return the start of a search for a hash; later additions do not invalidate the start."""
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
        """Drop the items of messages at or behind an offset, and rebuild the slots.

        After a crash, slots and header may be older or newer than the items, so only items are
        used. The first invalid item ends the file.
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
    """Open or create an index file, without loading it."""
    return IndexFile(path, files.open(path, create=True), layout)


def _empty_slots(count: int) -> memoryview:
    """Return zeroed slots, in huge pages where available: keys touch slots all over the table."""
    memory = mmap.mmap(-1, count * SLOT.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # huge pages are an optimization
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory).cast("i")


def _swapped(slots: memoryview) -> memoryview:
    """Copy slots, byte-swapped between the machine's and the file's byte order.

    The memory of the copy is mapped, so that the operating system has it back at once; malloc would
    keep it.
    """
    if not slots:
        return memoryview(b"")
    copy = memoryview(mmap.mmap(-1, slots.nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    if swap_into is not None:
        swap_into(copy, slots)
        return copy
    numbers = array("i")
    numbers.frombytes(slots.cast("B"))
    if sys.byteorder == "little":
        numbers.byteswap()
    copy[:] = memoryview(numbers).cast("B")
    return copy


def _runs(blocks: list[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbouring blocks as start and end."""
    start = end = -1
    for block in blocks:
        if block != end or end - start >= BLOCKS_PER_WRITE:
            if end > start:
                yield start, end
            start = block
        end = block + 1
    if end > start:
        yield start, end
