# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Access control on the compiled fast path: admitted requests with a right signature pass.

The guard asks auth/admissions.py whether the gate has admitted such a request before, and verifies
the signature over the ext fields in sorted order and the body. Requests that do not pass are for
the slow path, where the gate decides; so the guard never refuses, and needs no rules.
The signature is compatible with RocketMQ's AclUtils.combineRequestContent and AclSigner.
"""

from binascii import b2a_base64

import cython
from cython.cimports.core_broker.kernel.fields import (
    GROUP_FIELD,
    TOPIC_FIELD,
    NamedHeader,
)
from cython.cimports.core_broker.kernel.octets import Text, put32, put_decimal, same
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcmp, memcpy

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
        """Sort the ext fields by name; false for too many fields, or two with the same name."""
        name: Text
        value: Text
        order: cython.int
        i: cython.int
        k: cython.int
        if self.count > SIGNED_FIELDS_MAX:
            return False
        for i in range(1, self.count):
            name = self.names[i]
            value = self.values[i]
            k = i
            while k > 0:
                order = compare(self.names[k - 1], name)
                if order == 0:
                    return False
                if order < 0:
                    break
                self.names[k] = self.names[k - 1]
                self.values[k] = self.values[k - 1]
                k -= 1
            self.names[k] = name
            self.values[k] = value
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

    def passes(self, address, body, body_bytes):
        """Return true for the request of `header` when the gate would admit the request."""
        header: SignedHeader = self.header
        account: Text
        signature: Text
        i: cython.int
        different: cython.int = 0
        buffer: uint8_t[1024]
        at: cython.pointer(uint8_t) = buffer
        if address in self._white_addresses:
            return True
        if header.count == 0 or not header.sort():
            return False
        account.p = signature.p = cython.NULL
        account.n = signature.n = 0
        for i in range(header.count):
            if same(header.names[i], b"AccessKey", 9):
                account = header.values[i]
            elif same(header.names[i], b"Signature", 9):
                signature = header.values[i]
        if account.p == cython.NULL or signature.p == cython.NULL:
            return False
        if signature.n != SIGNATURE_CHARS or len(address) + account.n + 8 > KEY_BYTES_MAX:
            return False
        put32(at, cython.cast(uint32_t, len(address)))
        memcpy(at + 4, PyBytes_AS_STRING(address), len(address))
        at += 4 + len(address)
        put32(at, account.n)
        memcpy(at + 4, account.p, account.n)
        at += 4 + account.n
        who: bytes = PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, cython.address(buffer[0])), at - cython.address(buffer[0])
        )
        admitted = self._accounts.get(who)
        if admitted is None or self._resources(signature) not in admitted.resources:
            return False
        expected: bytes = b2a_base64(
            admitted.signing_key.digest(self._content(body, body_bytes)), newline=False
        )
        text: cython.pointer(uint8_t) = cython.cast(
            cython.pointer(uint8_t), PyBytes_AS_STRING(expected)
        )
        if len(expected) != SIGNATURE_CHARS:
            return False
        for i in range(SIGNATURE_CHARS):  # the time must not depend on the first difference
            different |= text[i] ^ signature.p[i]
        return different == 0

    def _content(self, body, body_bytes):
        """Return the signed bytes: all field values but the Signature, by name, and the body."""
        header: SignedHeader = self.header
        size: int64_t = body_bytes
        i: cython.int
        for i in range(header.count):
            if not same(header.names[i], b"Signature", 9):
                size += header.values[i].n
        content: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
        at: cython.pointer(uint8_t) = cython.cast(
            cython.pointer(uint8_t), PyBytes_AS_STRING(content)
        )
        for i in range(header.count):
            if not same(header.names[i], b"Signature", 9):
                memcpy(at, header.values[i].p, header.values[i].n)
                at += header.values[i].n
        memcpy(at, body, body_bytes)
        return content

    def _resources(self, signature):
        """Return code, and topic and group or a heartbeat's signature, as one key.

        Empty bytes are for a request of the slow path.
        """
        header: SignedHeader = self.header
        buffer: uint8_t[1024]
        at: cython.pointer(uint8_t) = buffer
        end: cython.pointer(uint8_t)
        topic: Text = header.fields[1]
        group: Text = header.fields[GROUP_FIELD]
        has_group: cython.bint = header.code in (PULL, LITE_PULL, COMMIT)
        if has_group:
            topic = header.fields[TOPIC_FIELD]
            if group.p == cython.NULL:
                return b""
        elif header.code == HEART_BEAT:
            topic = signature
        elif header.code != SEND_V2 and header.code != SEND_BATCH:
            return b""
        if topic.p == cython.NULL or topic.n + (group.n if has_group else 0) + 64 > KEY_BYTES_MAX:
            return b""
        end = put_decimal(at + 4, header.code)
        put32(at, cython.cast(uint32_t, end - at - 4))
        put32(end, topic.n)
        memcpy(end + 4, topic.p, topic.n)
        end += 4 + topic.n
        if has_group:
            put32(end, group.n)
            memcpy(end + 4, group.p, group.n)
            end += 4 + group.n
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, at), end - at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def compare(a: Text, b: Text) -> cython.int:
    """Compare two names of ASCII as Java compares strings."""
    order: cython.int = memcmp(a.p, b.p, min(a.n, b.n))
    return order if order else a.n - b.n
