"""The layout of an index file.

    index/yyyyMMddHHmmssSSS, 40 + 4 * maxHashSlotNum + 20 * maxIndexNum bytes
    header   8 begin timestamp   8 end timestamp   8 begin offset   8 end offset
             4 slots in use      4 number of the next item
    slot     4 number of the newest item of its chain, 0 without items
    item     4 key hash  8 physical offset  4 seconds since begin timestamp  4 previous item

Items are numbered from 1; the position of item 0 stays empty. Slot = key hash % slots. Timestamps
are store times. Compatible with RocketMQ's IndexFile and IndexHeader.
"""

from dataclasses import dataclass

from core_broker.message.layout import Layout

HEADER_LAYOUT = Layout(
    ("begin_timestamp", "q"),
    ("end_timestamp", "q"),
    ("begin_offset", "q"),
    ("end_offset", "q"),
    ("slots_in_use", "i"),
    ("next_item", "i"),
)
ITEM_LAYOUT = Layout(
    ("key_hash", "i"), ("physical_offset", "q"), ("seconds", "i"), ("previous_item", "i")
)
HEADER = HEADER_LAYOUT.struct
SLOT = Layout(("newest_item", "i")).struct
ITEM = ITEM_LAYOUT.struct


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The dimensions of all index files of a store: maxHashSlotNum and maxIndexNum."""

    slot_count: int
    item_max: int

    @property
    def size(self) -> int:
        """The size of a file, bytes; constant from creation on."""
        return self.item_at(self.item_max)

    def slot_at(self, slot: int) -> int:
        """Return the first byte of a slot."""
        return HEADER.size + slot * SLOT.size

    def item_at(self, number: int) -> int:
        """Return the first byte of an item."""
        return HEADER.size + self.slot_count * SLOT.size + number * ITEM.size
