# Interface of hmac_sha1.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    DIGEST_BYTES = 20
    # A digest and one more byte: Base64 reads three bytes at a time.
    DIGEST_ROOM = 21
    # Values up to this size together are collected before they are hashed: each call has its price.
    COLLECTED_BYTES_MAX = 1024

cdef class HmacKey:
    # Contexts of OpenSSL: the states behind the key's inner and outer block, and the one in use.
    cdef void *_inner
    cdef void *_outer
    cdef void *_state
    cdef uint8_t _collected[COLLECTED_BYTES_MAX]
    cdef int _count
    cdef bint begin(self) noexcept nogil
    cdef bint add(self, const uint8_t *at, int64_t count) noexcept nogil
    cdef bint end(self, const uint8_t *body, int64_t body_bytes, uint8_t *digest) except -1
    cdef bint _finish(self, const uint8_t *body, int64_t body_bytes, uint8_t *digest) noexcept nogil
