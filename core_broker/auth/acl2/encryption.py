"""Encryption of the passwords in the users' file: AES-256-GCM.

A stored text is `KEY_ID.BASE64`: the key's id, and a random nonce with the encrypted password. The
user's name is authenticated with the password, so that no text is valid for another user.
"""

import binascii
import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_ID_BYTES = 4


class KeyedCipher:
    """Encrypts with the first key, and decrypts with every key; implements `PasswordCipher`."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Each key has 32 bytes; there is at least one."""
        self._ciphers = {_key_id(key): AESGCM(key) for key in keys}
        self._first = _key_id(keys[0])

    def encrypt(self, username: str, password: str) -> str:
        """Return the encrypted password as text."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(nonce, password.encode(), username.encode())
        return f"{self._first}.{b64encode(nonce + sealed).decode()}"

    def decrypt(self, username: str, text: str) -> str:
        """Return the password; raises ValueError for a missing key or a changed text."""
        key_id, _, sealed_text = text.partition(".")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise ValueError(
                f"the password of {username} is encrypted with the key {key_id[:8]}, which is not "
                f"among the given keys ({', '.join(self._ciphers)})"
            )
        try:
            sealed = b64decode(sealed_text, validate=True)
            nonce, sealed = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            return cipher.decrypt(nonce, sealed, username.encode()).decode()
        except (InvalidTag, binascii.Error, ValueError):
            raise ValueError(f"the encrypted password of {username} is damaged") from None

    def is_current(self, text: str) -> bool:
        """Whether the first key encrypted the text."""
        return text.partition(".")[0] == self._first


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"key id:" + key).digest()[:_ID_BYTES].hex()
