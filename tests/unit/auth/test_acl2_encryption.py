"""Passwords encrypted in the users' file."""

import os

import pytest

from core_broker.auth.acl2.encryption import KeyedCipher
from core_broker.auth.acl2.model import User
from core_broker.auth.acl2.stored import decode, encode, is_encrypted
from core_broker.auth.acl2.tables import AccessTables
from core_broker.errors import ProtocolError

OLD, NEW = os.urandom(32), os.urandom(32)
TABLES = AccessTables({name: User(name, f"secret-of-{name}") for name in ("alice", "b 密")}, {})


def test_encrypted_users_are_read_again() -> None:
    content = encode(TABLES, KeyedCipher([OLD]))
    assert b"secret-of" not in content
    assert decode(content, KeyedCipher([OLD])) == TABLES
    assert encode(TABLES, KeyedCipher([OLD])) != content, "the nonces are random"


def test_old_keys_decrypt_and_the_first_key_encrypts() -> None:
    both = KeyedCipher([NEW, OLD])
    old = encode(TABLES, KeyedCipher([OLD]))
    assert decode(old, both) == TABLES
    assert not is_encrypted(old, both)
    assert not is_encrypted(encode(TABLES), both)
    new = encode(TABLES, both)
    assert is_encrypted(new, both)
    assert decode(new, KeyedCipher([NEW])) == TABLES


def test_another_key_and_no_key_say_so() -> None:
    content = encode(TABLES, KeyedCipher([OLD]))
    with pytest.raises(ProtocolError, match="which is not among the given keys"):
        decode(content, KeyedCipher([NEW]))
    with pytest.raises(ProtocolError, match="authEncryptionKeyFile"):
        decode(content)


@pytest.mark.parametrize("cut", [1, 8, 9, 12, -1])
def test_a_cut_text_is_refused(cut: int) -> None:
    text = KeyedCipher([OLD]).encrypt("alice", "secret-of-alice")
    with pytest.raises(ValueError, match="alice"):
        KeyedCipher([OLD]).decrypt("alice", text[:cut])


def test_every_changed_character_is_refused() -> None:
    cipher = KeyedCipher([OLD])
    # 42 bytes with nonce and tag: Base64 without padding, in which every bit counts.
    text = cipher.encrypt("alice", "x" * 14)
    for index, character in enumerate(text):
        changed = text[:index] + ("A" if character != "A" else "B") + text[index + 1 :]
        with pytest.raises(ValueError, match="alice"):
            cipher.decrypt("alice", changed)


def test_a_text_is_valid_for_its_user_only() -> None:
    cipher = KeyedCipher([OLD])
    with pytest.raises(ValueError, match="bob is damaged"):
        cipher.decrypt("bob", cipher.encrypt("alice", "secret-of-alice"))
