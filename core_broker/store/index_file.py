"""An index file: finds messages by key through a hash table with chains.

    index/yyyyMMddHHmmssSSS, 40 + 4 * maxHashSlotNum + 20 * maxIndexNum bytes
    header   8 begin timestamp   8 end timestamp   8 begin offset   8 end offset
             4 slots in use      4 number of the next item
    slot     4 number of the newest item of its chain, 0 for none
    item     4 key hash  8 physical offset  4 seconds since begin timestamp  4 previous item

Items are numbered from 1. Slot = key hash % slots. Times are those of storing. Compatible with
RocketMQ's IndexFile and IndexHeader.

The slots of the newest file live in memory, since their writes go all over the table; a flush
writes the blocks that changed. Items are appended in blocks. Older files are read from disk.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from core_broker.errors import StoreCorrupt
from core_broker.store.files import File, Files

HEADER = Struct(">qqqqii")
SLOT = Struct(">i")
ITEM = Struct(">iqii")
SECONDS_MAX = 2**31 - 1
#: Items in memory are written when there are so many bytes of them.
TAIL_BYTES_MAX = 3200 * ITEM.size
#: Changed slots are written in blocks of this size.
SLOT_BLOCK = 4096
_SLOTS_PER_BLOCK = SLOT_BLOCK // SLOT.size
_EMPTY_SLOT = bytes(SLOT.size)
_CHUNK_ITEMS = 3200

#: Item number, key hash, physical offset, store time in ms rounded to seconds behind the begin.
Found = tuple[int, int, int, int]


class IndexFile:
    """One index file. Event loop only, except `write_slots`."""

    def __init__(self, path: Path, file: File, slot_count: int, item_max: int) -> None:
        self.path = path
        self.file = file
        self.slot_count = slot_count
        self.item_max = item_max
        self.begin_timestamp = 0
        self.end_timestamp = 0
        self.begin_physical = 0
        self.end_physical = 0
        self.slots_used = 0
        self.next_item = 1
        self._items_at = HEADER.size + slot_count * SLOT.size
        self._slots: bytearray | None = None
        self._changed_blocks: set[int] = set()
        self._tail = bytearray()
        self._tail_from = 1

    @property
    def size(self) -> int:
        """The size that the file has from the start."""
        return self._items_at + self.item_max * ITEM.size

    @property
    def is_full(self) -> bool:
        """No item fits any more."""
        return self.next_item >= self.item_max

    # -- life --

    def create(self, timestamp: int, offset_physical: int) -> None:
        """Lay out a new file that goes on where the one before ended."""
        self.file.truncate(0)
        self.file.truncate(self.size)
        self.begin_timestamp = self.end_timestamp = timestamp
        self.begin_physical = self.end_physical = offset_physical
        self._slots = bytearray(self.slot_count * SLOT.size)

    def load(self, actual_size: int) -> None:
        """Read the header; raises StoreCorrupt when this cannot be an index file of this layout."""
        if actual_size != self.size:
            reason = (
                f"it has {actual_size} bytes, not {self.size} by maxHashSlotNum and maxIndexNum"
            )
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
            self._slots = bytearray(self.file.pread(self.slot_count * SLOT.size, HEADER.size))

    def close_slots(self) -> None:
        """Let the memory go: everything is written and no more items come."""
        self._slots = None

    # -- add --

    def add(self, key_hash: int, offset_physical: int, timestamp: int) -> None:
        """Add an item; the caller has checked `is_full` and called `open_slots`."""
        slots = self._slots
        assert slots is not None
        number = self.next_item
        if number == 1:
            self.begin_timestamp = timestamp
            self.begin_physical = offset_physical
        slot = key_hash % self.slot_count
        (previous,) = SLOT.unpack_from(slots, slot * 4)
        SLOT.pack_into(slots, slot * 4, number)
        self._changed_blocks.add(slot // _SLOTS_PER_BLOCK)
        if previous == 0:
            self.slots_used += 1
        seconds = (timestamp - self.begin_timestamp) // 1000
        if not 0 <= seconds <= SECONDS_MAX:
            seconds = SECONDS_MAX if seconds > 0 else 0
        self._tail += ITEM.pack(key_hash, offset_physical, seconds, previous)
        self.next_item = number + 1
        self.end_timestamp = timestamp
        self.end_physical = offset_physical

    # -- write --

    @property
    def tail_bytes(self) -> int:
        """Bytes of items that are only in memory."""
        return len(self._tail)

    def write_tail(self) -> None:
        """Write the items in memory; on OSError they stay there."""
        if self._tail:
            self.file.pwrite(self._tail, self._item_at(self._tail_from))
            self._tail.clear()
            self._tail_from = self.next_item

    def take_changed_blocks(self) -> list[int]:
        """Return the blocks of slots to write and regard them as written."""
        blocks = sorted(self._changed_blocks)
        self._changed_blocks.clear()
        return blocks

    def mark_changed(self, blocks: list[int]) -> None:
        """Note blocks whose write failed."""
        self._changed_blocks.update(blocks)

    def write_slots(self, blocks: list[int]) -> None:
        """Write blocks of slots; may run off the loop, since a slot written late does no harm."""
        if self._slots is None:
            return
        view = memoryview(self._slots)
        for first, end in _runs(blocks):
            start = first * SLOT_BLOCK
            self.file.pwrite(view[start : end * SLOT_BLOCK], HEADER.size + start)

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

    def chain(self, key_hash: int) -> Iterator[Found]:
        """Yield the items of the chain of a hash, newest first; other hashes are among them."""
        number = self._slot(key_hash % self.slot_count)
        before = self.next_item
        while 0 < number < before:
            item_hash, offset, seconds, previous = self._item(number)
            yield number, item_hash, offset, self.begin_timestamp + seconds * 1000
            before, number = number, previous

    def _slot(self, slot: int) -> int:
        if self._slots is not None:
            return int(SLOT.unpack_from(self._slots, slot * SLOT.size)[0])
        return int(SLOT.unpack(self.file.pread(SLOT.size, HEADER.size + slot * SLOT.size))[0])

    def _item(self, number: int) -> tuple[int, int, int, int]:
        if number >= self._tail_from:
            return ITEM.unpack_from(self._tail, (number - self._tail_from) * ITEM.size)
        return ITEM.unpack(self.file.pread(ITEM.size, self._item_at(number)))

    def _item_at(self, number: int) -> int:
        return self._items_at + number * ITEM.size

    # -- recovery --

    def cut_physical(self, offset_physical: int) -> None:
        """Drop the items of messages at or behind an offset, and build the slots anew.

        Slots and header may be older or newer than the items, as a crash leaves them: only items
        count. The first one that makes no sense ends the file.
        """
        slots = self._slots = bytearray(self.slot_count * SLOT.size)
        number, last_offset, last_seconds, used = 1, self.begin_physical, 0, 0
        for key_hash, offset, seconds, previous in self._items_on_disk():
            is_sound = key_hash >= 0 and offset >= last_offset and 0 <= previous < number
            if not is_sound or offset >= offset_physical or number >= self.next_item:
                break
            slot_at = key_hash % self.slot_count * SLOT.size
            used += slots[slot_at : slot_at + SLOT.size] == _EMPTY_SLOT
            SLOT.pack_into(slots, slot_at, number)
            number, last_offset, last_seconds = number + 1, offset, seconds
        self._tail.clear()
        self.next_item = self._tail_from = number
        self.slots_used = used
        self.end_physical = last_offset
        self.end_timestamp = self.begin_timestamp + last_seconds * 1000
        self._changed_blocks.update(range(-(-len(slots) // SLOT_BLOCK)))

    def _items_on_disk(self) -> Iterator[tuple[int, int, int, int]]:
        for first in range(1, self.item_max, _CHUNK_ITEMS):
            count = min(_CHUNK_ITEMS, self.item_max - first)
            yield from ITEM.iter_unpack(self.file.pread(count * ITEM.size, self._item_at(first)))


def open_index_file(files: Files, path: Path, slot_count: int, item_max: int) -> IndexFile:
    """Open or create the file under a path; it is not loaded yet."""
    return IndexFile(path, files.open(path, create=True), slot_count, item_max)


def _runs(blocks: list[int]) -> Iterator[tuple[int, int]]:
    """Yield neighbouring blocks together, as first and end."""
    start = end = -1
    for block in blocks:
        if block != end:
            if end > start:
                yield start, end
            start = block
        end = block + 1
    if end > start:
        yield start, end
