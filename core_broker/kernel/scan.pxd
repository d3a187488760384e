# Interface of scan.py for the other modules of the kernel, without a Python call.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from core_broker.kernel.octets cimport Text

cdef enum:
    # Size of the memory for unescaped strings, bytes; properties always have escapes.
    SCRATCH_BYTES = 65536
    DIGITS_MAX = 18
    # Number of kept ext fields: 26 named by a letter, then the fields of fields.py.
    FIELDS = 38
    # Index of the ext field i, the properties of a send.
    PROPERTIES_FIELD = 8
    INT_MAX = 2147483647
    # Bytes of the name of an ext field of one letter, from the byte before its opening quote to the
    # opening quote of its value.
    LETTER_BYTES = 6
    QUOTE = 34
    COMMA = 44
    MINUS = 45
    SLASH = 47
    ZERO = 48
    NINE = 57
    COLON = 58
    BACKSLASH = 92
    UNICODE = 117
    OPENING = 123
    CLOSING = 125

cdef class Header:
    cdef int64_t code, flag, opaque, version
    cdef Text language
    cdef Text fields[FIELDS]
    cdef uint8_t *scratch
    cdef uint8_t *free_at
    # The string with characters beyond ASCII; NULL for a header of ASCII.
    cdef uint8_t *beyond_ascii
    cdef bint read(self, const uint8_t *at, uint32_t count) noexcept nogil
    cdef bint number(self, int field, int64_t *value) noexcept nogil
    cdef bint is_true(self, int field) noexcept nogil
    cdef bint is_common_send(self) noexcept nogil
    cdef bint _has_common_characters(self) noexcept nogil
    cdef uint8_t *_string(self, uint8_t *at, uint8_t *end, Text *result) noexcept nogil
    cdef uint8_t *_copied(self, uint8_t *start, uint8_t *at, uint8_t *end, Text *result) noexcept nogil
    cdef uint8_t *_ext_fields(self, uint8_t *at, uint8_t *end) noexcept nogil
    cdef void _note(self, Text name, Text value) noexcept nogil
    cdef uint8_t *_member(self, Text name, uint8_t *at, uint8_t *end) noexcept nogil
