# Interface of guard.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t, uint32_t

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
    cdef bint sort(self) noexcept nogil

cdef class Guard:
    cdef readonly SignedHeader header
    cdef dict _accounts
    cdef set _white_addresses
    cdef bint passes(self, bytes address, const uint8_t *body, uint32_t body_bytes) except -1
    cdef bytes _content(self, const uint8_t *body, uint32_t body_bytes)
    cdef bytes _resources(self, Text signature)
