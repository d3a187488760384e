# Types and limits of plain_records.py.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from core_broker.kernel.octets cimport Text

cdef enum:
    # Limits of one call: records, queues of them (with a power of two of slots), keys.
    RECORDS_MAX = 1024
    RUNS_MAX = 256
    RUN_SLOTS = 512
    ENTRIES_MAX = 4096
    # Numbers of an index entry: key hash, commit log offset, store time.
    ENTRY_NUMBERS = 3
    # Maximum size of a record; RECORD_BYTES_MAX of ha/record_stream.py.
    PLAIN_BYTES_MAX = 67108864
    BLANK_BYTES = 8
    KEY_SEPARATOR = 35

# Consecutive messages of one queue.
cdef struct Run:
    Text topic
    uint32_t key_seed
    int32_t queue_id
    int64_t first
    int64_t end
    int count
    # Index of the first unit of the run among all units, then of the next one to write.
    int unit

cdef struct FoundUnit:
    int run
    int64_t offset
    uint32_t size
    int64_t tags_code

cdef class PlainScan:
    cdef Run _runs[RUNS_MAX]
    # 1 + number of the run, 0 for a free slot.
    cdef short _slots[RUN_SLOTS]
    cdef FoundUnit _units[RECORDS_MAX]
    cdef int64_t _entries[ENTRIES_MAX * ENTRY_NUMBERS]
    cdef int _run_count, _unit_count, _entry_count
    cdef int64_t _stored_at
    # Properties of the record in hand; p is NULL for a missing one.
    cdef Text _tags, _keys, _unique_key
    cdef bint _read(self, uint8_t *record, uint32_t size, int64_t offset) noexcept
    cdef bint _properties(self, uint8_t *at, uint8_t *end) noexcept
    cdef int _run(self, Text topic, int32_t queue_id, int64_t queue_offset) noexcept
    cdef bint _index(self, uint32_t seed, int64_t offset, int64_t stored_at) noexcept
    cdef bint _index_key(self, uint32_t seed, uint8_t *key, int count, int64_t offset, int64_t stored_at) noexcept
    cdef list _take_runs(self)
    cdef bytes _take_units(self)
