# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""HMAC-SHA1 without an object of Python per request, computed by OpenSSL.

`hmac` of the standard library needs 1.5 µs per signature beside the hash itself. The functions are
those of the libcrypto that `_hashlib` of the standard library uses, found at run time: the kernel
needs no headers of OpenSSL, and loads no second libcrypto.
"""

import cython
from cython.cimports.core_broker.kernel.libcrypto import (
    EVP_DigestFinal_ex,
    EVP_DigestInit_ex,
    EVP_DigestUpdate,
    EVP_MD_CTX_copy_ex,
    EVP_MD_CTX_free,
    EVP_MD_CTX_new,
    EVP_sha1,
    find_functions,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.string import memcpy

BLOCK_BYTES = cython.declare(cython.int, 64)
#: Minimum size of a body that is hashed without the GIL, bytes: shorter than a thread switch.
UNLOCKED_BYTES_MIN = cython.declare(cython.int, 16384)

try:
    import _hashlib

    _file = _hashlib.__file__.encode()
except (ImportError, AttributeError):  # a Python without OpenSSL, or with OpenSSL built in
    _file = b""
#: Whether OpenSSL was found; otherwise no key can be made.
AVAILABLE: bool = bool(_file) and find_functions(_file)


@cython.cclass
class HmacKey:
    """The key of an HMAC: `begin`, `add` the values, and `end` with the body and the digest.

    `key` is at most one block long (64 bytes). The methods return false when OpenSSL fails.
    """

    def __init__(self, key: bytes) -> None:
        if not AVAILABLE:
            raise NotImplementedError("this Python has no shared library of OpenSSL")
        if len(key) > BLOCK_BYTES:
            raise ValueError(f"the key is longer than {BLOCK_BYTES} bytes")
        self._inner = _state_behind(bytes(each ^ 0x36 for each in key.ljust(BLOCK_BYTES, b"\0")))
        self._outer = _state_behind(bytes(each ^ 0x5C for each in key.ljust(BLOCK_BYTES, b"\0")))
        self._state = EVP_MD_CTX_new()
        if self._inner == cython.NULL or self._outer == cython.NULL or self._state == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._inner != cython.NULL:
            EVP_MD_CTX_free(self._inner)
        if self._outer != cython.NULL:
            EVP_MD_CTX_free(self._outer)
        if self._state != cython.NULL:
            EVP_MD_CTX_free(self._state)

    def digest(self, values: list, body: bytes) -> bytes:
        """Return the HMAC of values and body, for tests."""
        digest: uint8_t[DIGEST_ROOM]
        value: bytes
        is_right: cython.bint = self.begin()
        for value in values:
            is_right = is_right and self.add(
                cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(value)), len(value)
            )
        is_right = is_right and self.end(
            cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(body)), len(body), digest
        )
        if not is_right:
            raise OSError("OpenSSL failed")
        return cython.cast(bytes, digest[:DIGEST_BYTES])

    def begin(self):
        """Begin the HMAC of a request."""
        self._count = 0
        return EVP_MD_CTX_copy_ex(self._state, self._inner) == 1

    def add(self, at, count):
        """Hash `count` more bytes."""
        if self._count + count > COLLECTED_BYTES_MAX:
            if EVP_DigestUpdate(self._state, self._collected, self._count) != 1:
                return False
            self._count = 0
            if count > COLLECTED_BYTES_MAX:
                return EVP_DigestUpdate(self._state, at, count) == 1
        memcpy(self._collected + self._count, at, count)
        self._count += cython.cast(cython.int, count)
        return True

    def end(self, body, body_bytes, digest):
        """Hash the body, and write the HMAC to `digest`; a long body is hashed without the GIL."""
        is_right: cython.bint
        if body_bytes < UNLOCKED_BYTES_MIN:
            return self._finish(body, body_bytes, digest)
        with cython.nogil:
            is_right = self._finish(body, body_bytes, digest)
        return is_right

    def _finish(self, body, body_bytes, digest):
        return (
            EVP_DigestUpdate(self._state, self._collected, self._count) == 1
            and EVP_DigestUpdate(self._state, body, body_bytes) == 1
            and EVP_DigestFinal_ex(self._state, digest, cython.NULL) == 1
            and EVP_MD_CTX_copy_ex(self._state, self._outer) == 1
            and EVP_DigestUpdate(self._state, digest, DIGEST_BYTES) == 1
            and EVP_DigestFinal_ex(self._state, digest, cython.NULL) == 1
        )


@cython.cfunc
@cython.exceptval(check=False)
def _state_behind(block: bytes) -> cython.pointer(cython.void):
    """Return SHA-1 behind one block, or NULL."""
    state: cython.pointer(cython.void) = EVP_MD_CTX_new()
    if state == cython.NULL:
        return cython.NULL
    if (
        EVP_DigestInit_ex(state, EVP_sha1(), cython.NULL) == 1
        and EVP_DigestUpdate(state, PyBytes_AS_STRING(block), len(block)) == 1
    ):
        return state
    EVP_MD_CTX_free(state)
    return cython.NULL
