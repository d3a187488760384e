"""Signatures of requests, the same for ACL 1.0 and 2.0.

    AccessKey, SecurityToken   are ext fields
    Signature                  Base64(HmacSHA1(secret key, content))
    content                    the values of all ext fields but Signature, by key, then the body

Compatible with RocketMQ's AclSigner, AclUtils and AclClientRPCHook. Pure.
"""

import hmac
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha1
from typing import Final

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the name of a field
SIGNATURE: Final = "Signature"
#: Fields that some clients add after signing, together. Servers of RocketMQ 4.9 leave the first out
#: of the content, and clients before 4.9.4 do not sign it; Java clients of 5.3 add the zone after
#: signing; Go clients do not sign the token. No broker acts on zone or token.
UNSIGNED_FIELDS: Final = (
    frozenset({"_UNIQUE_KEY_QUERY"}),
    frozenset({"__ZONE_NAME", "__ZONE_MODE"}),
    frozenset({SECURITY_TOKEN}),
)

#: Longer keys are hashed (RFC 2104).
_BLOCK_BYTES: Final = 64


class SigningKey:
    """The secret key of an account, with the HMAC's first blocks computed once.

    The key appears neither in ``repr`` nor in logs, and is not pickled.
    """

    __slots__ = ("_block", "_prepared")

    def __init__(self, secret_key: str) -> None:
        key = _utf8(secret_key)
        # The rule of HMAC, which does not need a hash without collisions.
        self._block = key if len(key) <= _BLOCK_BYTES else sha1(key).digest()  # noqa: S324
        self._prepared = hmac.new(key, digestmod=sha1)

    def sign(self, signed_fields: bytes, body: bytes | memoryview = b"") -> str:
        """The Base64 signature of the joined field values and the body."""
        mac = self._prepared.copy()
        mac.update(signed_fields)
        if body:
            mac.update(body)
        return b64encode(mac.digest()).decode()

    def block(self) -> bytes:
        """Return the secret key as HMAC uses the key: one block of SHA-1 at most."""
        return self._block

    def accepts(self, fields: Mapping[str, str], body: bytes | memoryview) -> bool:
        """Whether the request has the signature of this key.

        The content has all fields, or all fields without one group of `UNSIGNED_FIELDS`. Computes
        four HMACs at most. The comparison takes the same time for every wrong text.
        """
        presented = _utf8(fields.get(SIGNATURE, ""))
        return bool(presented) and any(
            hmac.compare_digest(self.sign(content, body).encode(), presented)
            for content in _contents(fields)
        )

    def __repr__(self) -> str:
        return "SigningKey(***)"

    def __reduce__(self) -> str:
        raise TypeError("Secret keys are not pickled.")


def signed_fields(
    fields: Mapping[str, str], without: frozenset[str] = frozenset({SIGNATURE})
) -> bytes:
    """The joined values of the ext fields, by key in Java's order, in UTF-8."""
    names = [name for name in fields if name not in without]
    if all(map(str.isascii, names)):
        names.sort()
    else:
        # Java sorts by UTF-16 units; beyond the first plane the order differs from code points.
        names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return _utf8("".join([fields[name] for name in names]))


def _contents(fields: Mapping[str, str]) -> Iterator[bytes]:
    own = frozenset({SIGNATURE})
    yield signed_fields(fields, own)
    for group in UNSIGNED_FIELDS:
        if not group.isdisjoint(fields):
            yield signed_fields(fields, own | group)


def _utf8(text: str) -> bytes:
    """UTF-8 as Java writes it: a surrogate without its partner becomes a question mark."""
    return text.encode("utf-8", "replace")
