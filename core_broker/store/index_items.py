"""Adds keys to the slots and items of an index file (index_layout.py).

The compiled form of this is core_broker/kernel/index_items.py.
"""

from array import array
from typing import TypeAlias

from core_broker.store.index_layout import ITEM

#: Maximum of an item's seconds field.
SECONDS_MAX = 2**31 - 1
#: Slots per written block.
SLOTS_PER_BLOCK = 1024
#: Entries, each with key hash, physical offset and store time; type code 'q'.
IndexEntries: TypeAlias = "array[int]"
#: Numbers per entry.
ENTRY_NUMBERS = 3

_pack_item = ITEM.pack


def add_items(
    entries: IndexEntries,
    slots: memoryview,
    number: int,
    begin_timestamp: int,
    tail: bytearray,
    changed_blocks: bytearray,
) -> int:
    """Add entries from item `number` on; return the number of newly used slots.

    The items are appended to `tail`; changed blocks of slots become 1 in `changed_blocks`.
    """
    slot_count = len(slots)
    used, stored_at, seconds = 0, -1, 0
    numbers = iter(entries)
    for key_hash, offset, timestamp in zip(numbers, numbers, numbers, strict=True):
        slot = key_hash % slot_count
        block = slot // SLOTS_PER_BLOCK
        previous = slots[slot]
        slots[slot] = number
        changed_blocks[block] = 1
        if not previous:
            used += 1
        if timestamp != stored_at:
            stored_at = timestamp
            seconds = min(max((timestamp - begin_timestamp) // 1000, 0), SECONDS_MAX)
        tail += _pack_item(key_hash, offset, seconds, previous)
        number += 1
    return used
