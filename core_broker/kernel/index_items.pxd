# Numbers that index_items.py divides by and multiplies with.

cdef enum:
    # Of an entry: its hash, the offset of its record, and its store time.
    ENTRY_NUMBERS = 3
    ITEM_BYTES = 20
    SLOTS_PER_BLOCK = 1024
    SLOT_BYTES = 4
    SECONDS_MAX = 2147483647
    # So many entries ahead the slots are fetched: they lie anywhere in 20 MB.
    AHEAD = 12
    AHEAD_MAX = 16
