# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Access control on the compiled fast path: admitted requests with a right signature pass.

The guard asks auth/admissions.py whether the gate has admitted such a request before, and verifies
the signature over the ext fields in sorted order and the body. Requests that do not pass are for
the slow path, where the gate decides; so the guard never refuses, and needs no rules.
The signature is compatible with RocketMQ's AclUtils.combineRequestContent and AclSigner.
"""

import cython
from cython.cimports.core_broker.kernel.fields import (
    GROUP_FIELD,
    TOPIC_FIELD,
    NamedHeader,
)
from cython.cimports.core_broker.kernel.hmac_sha1 import DIGEST_BYTES, DIGEST_ROOM, HmacKey
from cython.cimports.core_broker.kernel.octets import Text, put32, put_decimal, same
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.string import memcmp, memcpy

from core_broker.kernel.hmac_sha1 import AVAILABLE

SEND_V2 = cython.declare(cython.int, 310)
SEND_BATCH = cython.declare(cython.int, 320)
PULL = cython.declare(cython.int, 11)
LITE_PULL = cython.declare(cython.int, 361)
COMMIT = cython.declare(cython.int, 15)
HEART_BEAT = cython.declare(cython.int, 34)


@cython.cclass
class SignedHeader(NamedHeader):
    """A header with all ext fields."""

    def read(self, at, count):
        """Read a header of `count` bytes; false for a header of the slow path."""
        self.count = 0
        return NamedHeader.read(self, at, count)

    def _ext_fields(self, at, end):
        """Read the object of ext fields; a second object would replace the first."""
        if self.count:
            return cython.NULL
        return NamedHeader._ext_fields(self, at, end)

    def _note(self, name, value):
        """Keep an ext field."""
        if self.count < SIGNED_FIELDS_MAX:
            self.names[self.count] = name
            self.values[self.count] = value
        self.count += 1
        NamedHeader._note(self, name, value)

    def sort(self):
        """Sort the ext fields by name; false for too many fields, or two with the same name.

        Clients write the fields of a request always in the same order, so the previous order is
        tried first.
        """
        name: Text
        difference: cython.int
        i: cython.int
        k: cython.int
        if self.count > SIGNED_FIELDS_MAX:
            return False
        if self.count == self._sorted_count and self._is_sorted():
            return True
        self._sorted_count = 0
        for i in range(self.count):
            name = self.names[i]
            k = i
            while k > 0:
                difference = compare(self.names[self.order[k - 1]], name)
                if difference == 0:
                    return False
                if difference < 0:
                    break
                self.order[k] = self.order[k - 1]
                k -= 1
            self.order[k] = i
        self._sorted_count = self.count
        return True

    def _is_sorted(self):
        """Return true when `order` puts the names in ascending order, without equal names."""
        i: cython.int
        for i in range(1, self.count):
            if compare(self.names[self.order[i - 1]], self.names[self.order[i]]) >= 0:
                return False
        return True


@cython.cclass
class Guard:
    """Decides which requests the compiled fast path may take.

    `admissions` is an auth.admissions.Admissions; `joined` there has the layout of the keys.
    """

    def __init__(self, admissions: object) -> None:
        self.header = SignedHeader()
        self._accounts = admissions.accounts
        self._white_addresses = admissions.white_addresses
        self._who = self._what = b""

    def passes(self, address, body, body_bytes):
        """Return true for the request of `header` when the gate would admit the request."""
        header: SignedHeader = self.header
        account: Text
        signature: cython.int = -1
        i: cython.int
        if self._white_addresses and address in self._white_addresses:
            return True
        if header.count == 0 or not header.sort():
            return False
        account.p = cython.NULL
        account.n = 0
        for i in range(header.count):
            if same(header.names[i], b"AccessKey", 9):
                account = header.values[i]
            elif same(header.names[i], b"Signature", 9):
                signature = i
        if account.p == cython.NULL or signature < 0:
            return False
        if header.values[signature].n != SIGNATURE_CHARS:
            return False
        admitted = self._admitted(address, account, header.values[signature])
        return admitted is not None and self._verify(admitted, signature, body, body_bytes)

    def _admitted(self, address, account, signature):
        """Return the AdmittedAccount of a request whose resources were admitted, or None."""
        buffer: uint8_t[KEY_BYTES_MAX]
        at: cython.pointer(uint8_t) = buffer
        if len(address) + account.n + 8 > KEY_BYTES_MAX:
            return None
        put32(at, cython.cast(uint32_t, len(address)))
        memcpy(at + 4, PyBytes_AS_STRING(address), len(address))
        at += 4 + len(address)
        put32(at, account.n)
        memcpy(at + 4, account.p, account.n)
        at += 4 + account.n
        self._who = as_bytes(self._who, buffer, at - cython.address(buffer[0]))
        admitted = self._accounts.get(self._who)
        if admitted is None or not self._has_resources(admitted.resources, signature):
            return None
        return admitted

    def _has_resources(self, resources, signature):
        """Return true when code, and topic and group or a heartbeat's signature, are in a set."""
        header: SignedHeader = self.header
        buffer: uint8_t[KEY_BYTES_MAX]
        at: cython.pointer(uint8_t) = buffer
        end: cython.pointer(uint8_t)
        topic: Text = header.fields[1]
        group: Text = header.fields[GROUP_FIELD]
        has_group: cython.bint = header.code in (PULL, LITE_PULL, COMMIT)
        if has_group:
            topic = header.fields[TOPIC_FIELD]
            if group.p == cython.NULL:
                return False
        elif header.code == HEART_BEAT:
            topic = signature
        elif header.code != SEND_V2 and header.code != SEND_BATCH:
            return False
        if topic.p == cython.NULL or topic.n + (group.n if has_group else 0) + 64 > KEY_BYTES_MAX:
            return False
        end = put_decimal(at + 4, header.code)
        put32(at, cython.cast(uint32_t, end - at - 4))
        put32(end, topic.n)
        memcpy(end + 4, topic.p, topic.n)
        end += 4 + topic.n
        if has_group:
            put32(end, group.n)
            memcpy(end + 4, group.p, group.n)
            end += 4 + group.n
        self._what = as_bytes(self._what, at, end - at)
        return self._what in resources

    def _verify(self, admitted, signature, body, body_bytes):
        """Verify a signature over the values of all other fields, by name, and the body."""
        header: SignedHeader = self.header
        presented: Text = header.values[signature]
        digest: uint8_t[DIGEST_ROOM]
        text: uint8_t[SIGNATURE_CHARS]
        different: cython.int = 0
        i: cython.int
        k: cython.int
        if admitted.kernel_key is None:
            if not AVAILABLE:
                return False
            admitted.kernel_key = HmacKey(admitted.signing_key.block())
        key: HmacKey = admitted.kernel_key
        if not key.begin():
            return False
        for i in range(header.count):
            k = header.order[i]
            if k != signature and not key.add(header.values[k].p, header.values[k].n):
                return False
        if not key.end(body, body_bytes, digest):
            return False
        put_base64(text, digest)
        for i in range(SIGNATURE_CHARS):  # the time must not depend on the first difference
            different |= text[i] ^ presented.p[i]
        return different == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def compare(a: Text, b: Text) -> cython.int:
    """Compare two names of ASCII as Java compares strings."""
    order: cython.int
    if a.n and b.n and a.p[0] != b.p[0]:
        return a.p[0] - b.p[0]
    order = memcmp(a.p, b.p, min(a.n, b.n))
    return order if order else a.n - b.n


@cython.cfunc
@cython.inline
def as_bytes(last: bytes, at: cython.pointer(uint8_t), count: cython.Py_ssize_t) -> bytes:
    """Return `count` bytes; `last` when equal, whose hash is known."""
    if len(last) == count and memcmp(PyBytes_AS_STRING(last), at, count) == 0:
        return last
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, at), count)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_base64(to: cython.pointer(uint8_t), digest: cython.pointer(uint8_t)) -> cython.void:
    """Write a digest as Base64; the byte behind the digest becomes 0."""
    alphabet: cython.p_const_char = (
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    )
    bits: uint32_t
    i: cython.int
    digest[DIGEST_BYTES] = 0
    for i in range(0, DIGEST_BYTES, 3):
        bits = (
            (cython.cast(uint32_t, digest[i]) << 16)
            | (cython.cast(uint32_t, digest[i + 1]) << 8)
            | digest[i + 2]
        )
        to[0] = alphabet[(bits >> 18) & 63]
        to[1] = alphabet[(bits >> 12) & 63]
        to[2] = alphabet[(bits >> 6) & 63]
        to[3] = alphabet[bits & 63]
        to += 4
    (to - 1)[0] = b"="
