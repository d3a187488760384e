# What scan.py offers to the other modules of the kernel, without a Python call.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

# A piece of the read buffer, or of the header's scratch; p is NULL when there is none.
cdef struct Text:
    uint8_t *p
    int n

cdef uint32_t get32(const uint8_t *at) noexcept nogil
cdef int64_t get64(const uint8_t *at) noexcept nogil
cdef uint32_t get16(const uint8_t *at) noexcept nogil
cdef void put32(uint8_t *at, uint32_t value) noexcept nogil
cdef void put64(uint8_t *at, int64_t value) noexcept nogil
cdef uint8_t *put_decimal(uint8_t *at, int64_t value) noexcept nogil
cdef uint8_t *put_hex16(uint8_t *at, uint64_t value) noexcept nogil
cdef uint32_t java_hash(const uint8_t *at, int count, uint32_t seed) noexcept nogil
cdef bint same(Text text, const char *word, int count) noexcept nogil

cdef class Header:
    cdef int64_t code, flag, opaque, version
    cdef Text language
    cdef Text fields[38]
    cdef uint8_t *scratch
    cdef uint8_t *free_at
    cdef bint read(self, const uint8_t *at, uint32_t count) noexcept nogil
    cdef bint number(self, int field, int64_t *value) noexcept nogil
    cdef bint is_true(self, int field) noexcept nogil
    cdef bint is_usual(self) noexcept nogil
    cdef uint8_t *_string(self, uint8_t *at, uint8_t *end, Text *found) noexcept nogil
    cdef uint8_t *_escaped(self, uint8_t *start, uint8_t *at, uint8_t *end, Text *found) noexcept nogil
    cdef uint8_t *_ext_fields(self, uint8_t *at, uint8_t *end) noexcept nogil
    cdef void _note(self, Text name, Text value) noexcept nogil
    cdef uint8_t *_member(self, Text name, uint8_t *at, uint8_t *end) noexcept nogil
