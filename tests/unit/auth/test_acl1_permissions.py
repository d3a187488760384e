"""Permissions of ACL 1.0: texts, and the full table of granted and required bits."""

import pytest

from core_broker.auth.acl1.permissions import Perm, is_known_permission, parse_permission, permits


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        *[("PUB", 4), ("SUB", 8), ("PUB|SUB", 12), ("SUB|PUB", 12), ("DENY", 1), (" PUB ", 4)],
        *[(None, 1), ("", 1), ("ANY", 1), ("pub", 1), ("PUB | SUB", 1), ("PUB|SUB|PUB", 1)],
    ],
)
def test_texts(text: str | None, bits: int) -> None:
    assert parse_permission(text) == bits


def test_known_words() -> None:
    assert all(map(is_known_permission, ["DENY", "PUB", "SUB", "PUB|SUB", "SUB|PUB", " SUB"]))
    assert not any(map(is_known_permission, ["", "ANY", "sub", "PUB,SUB"]))


@pytest.mark.parametrize("granted", range(16))
def test_the_deny_bit_beats_all_others(granted: int) -> None:
    for required in (Perm.PUB, Perm.SUB, Perm.ANY):
        wanted = 12 if required is Perm.ANY else required
        expected = not granted & 1 and granted & wanted != 0
        assert permits(Perm(granted), required) is expected
