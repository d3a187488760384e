# Interface of guard.py for the other modules of the kernel.
from libc.stdint cimport uint8_t, uint32_t

from core_broker.kernel.fields cimport NamedHeader
from core_broker.kernel.octets cimport Text

cdef enum:
    # Maximum ext fields of a signed request; requests with more fields are for the slow path.
    SIGNED_FIELDS_MAX = 48
    # Maximum size of address, account, topic and group as one key, bytes.
    KEY_BYTES_MAX = 1024
    SIGNATURE_CHARS = 28

cdef class SignedHeader(NamedHeader):
    # All ext fields in the order of the header, and their number.
    cdef Text names[SIGNED_FIELDS_MAX]
    cdef Text values[SIGNED_FIELDS_MAX]
    cdef int count
    # The fields by name, as indexes; valid for the number of fields of the last `sort`.
    cdef int order[SIGNED_FIELDS_MAX]
    cdef int _sorted_count
    cdef bint sort(self) noexcept nogil
    cdef bint _is_sorted(self) noexcept nogil

cdef class Guard:
    cdef readonly SignedHeader header
    cdef dict _accounts
    cdef set _white_addresses
    # The keys of the last request: most requests have the same, and bytes remember their hash.
    cdef bytes _who, _what
    cdef bint passes(self, bytes address, const uint8_t *body, uint32_t body_bytes) except -1
    cdef object _admitted(self, bytes address, Text account, Text signature)
    cdef bint _has_resources(self, set resources, Text signature) except -1
    cdef bint _verify(
        self, object admitted, int signature, const uint8_t *body, uint32_t body_bytes) except -1
