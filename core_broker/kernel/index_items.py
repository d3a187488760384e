# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Entering keys into the slots and items of an index file, compiled.

The layout and the form in Python are in store/index_items.py.
"""

import cython
from cython.cimports.core_broker.kernel.octets import put32, put64
from cython.cimports.core_broker.kernel.prefetch import prefetch
from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t


def add_items(
    entries: cython.longlong[::1],
    slots: cython.int[::1],
    number: cython.int,
    begin_timestamp: int64_t,
    tail: bytearray,
    changed_blocks: bytearray,
) -> int:
    """Enter entries from item `number` on; return the number of newly used slots."""
    count: cython.Py_ssize_t = entries.shape[0] // ENTRY_NUMBERS
    slot_count: cython.int = cython.cast(cython.int, slots.shape[0])
    before: cython.Py_ssize_t = len(tail)
    at: cython.pointer(uint8_t)
    i: cython.Py_ssize_t
    key_hash: int32_t
    seconds: int64_t
    slot: cython.int
    block: cython.int
    previous: cython.int
    changed: cython.p_char = PyByteArray_AS_STRING(changed_blocks)
    used: cython.int = 0
    # Slots of the next entries, computed once.
    coming: cython.int[AHEAD_MAX]
    PyByteArray_Resize(tail, before + count * ITEM_BYTES)
    at = cython.cast(cython.pointer(uint8_t), PyByteArray_AS_STRING(tail)) + before
    for i in range(count):
        if i + AHEAD < count:
            slot = cython.cast(int32_t, entries[ENTRY_NUMBERS * (i + AHEAD)]) % slot_count
            coming[(i + AHEAD) % AHEAD_MAX] = slot
            prefetch(cython.cast(cython.pointer(uint8_t), cython.address(slots[slot])), SLOT_BYTES)
        key_hash = cython.cast(int32_t, entries[ENTRY_NUMBERS * i])
        slot = coming[i % AHEAD_MAX] if i >= AHEAD else key_hash % slot_count
        block = slot // SLOTS_PER_BLOCK
        previous = slots[slot]
        slots[slot] = number
        changed[block] = 1
        used += previous == 0
        seconds = (entries[ENTRY_NUMBERS * i + 2] - begin_timestamp) // 1000
        # C divides towards zero; an entry older than the file counts as of its begin.
        seconds = 0 if seconds < 0 else SECONDS_MAX if seconds > SECONDS_MAX else seconds
        put32(at, cython.cast(uint32_t, key_hash))
        put64(at + 4, entries[ENTRY_NUMBERS * i + 1])
        put32(at + 12, cython.cast(uint32_t, seconds))
        put32(at + 16, cython.cast(uint32_t, previous))
        at += ITEM_BYTES
        number += 1
    return used
