"""Encryption of secrets in Django's database.

The keys are derived from SECRET_KEY, one for each purpose. After a change of SECRET_KEY, or in a
copy of the database without the key, the secrets cannot be read; SECRET_KEY_FALLBACKS keeps
secrets of earlier keys readable.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

T = TypeVar("T", bound=msgspec.Struct)

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts structs; `purpose` binds the derived key to one use."""

    purpose: bytes

    def sealed(self, secret: msgspec.Struct) -> str:
        """Return the encrypted struct as text."""
        return self._fernets().encrypt(msgspec.json.encode(secret)).decode()

    def opened(self, text: str, kind: type[T]) -> T | None:
        """Return the struct; None for a text of another SECRET_KEY or purpose."""
        try:
            return msgspec.json.decode(self._fernets().decrypt(text.encode()), type=kind)
        except (InvalidToken, msgspec.MsgspecError):
            return None

    def _fernets(self) -> MultiFernet:
        """Encrypt with the key of SECRET_KEY; decrypt also with those of SECRET_KEY_FALLBACKS."""
        secret_keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        return MultiFernet([Fernet(self._derived(secret_key)) for secret_key in secret_keys])

    def _derived(self, secret_key: str | bytes) -> bytes:
        derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=self.purpose)
        return urlsafe_b64encode(derivation.derive(force_bytes(secret_key)))
