# Numbers of index_items.py that must be compile-time constants: divisors and factors.

cdef enum:
    # Numbers of an entry: hash, commit log offset of the record, store time.
    ENTRY_NUMBERS = 3
    ITEM_BYTES = 20
    SLOTS_PER_BLOCK = 1024
    SLOT_BYTES = 4
    SECONDS_MAX = 2147483647
    # Prefetch distance, entries: slots lie anywhere in 20 MB.
    AHEAD = 12
    AHEAD_MAX = 16
