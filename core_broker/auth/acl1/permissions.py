"""Permissions of ACL 1.0: DENY, PUB, SUB and PUB|SUB.

    DENY 1   ANY 2   PUB 4   SUB 8

Compatible with RocketMQ's `Permission`: texts are case-sensitive, an unknown text means DENY, and
the DENY bit beats all others. Pure.
"""

from enum import IntFlag
from typing import Final


class Perm(IntFlag):
    """Bits of a granted or required permission; ANY is only required, PUB or SUB satisfies it."""

    DENY = 1
    ANY = 2
    PUB = 4
    SUB = 8


#: Permission by text.
PERMISSIONS: Final = {
    "DENY": Perm.DENY,
    "PUB": Perm.PUB,
    "SUB": Perm.SUB,
    "PUB|SUB": Perm.PUB | Perm.SUB,
    "SUB|PUB": Perm.PUB | Perm.SUB,
}


def parse_permission(text: str | None) -> Perm:
    """The permission of a text; a missing or unknown text is DENY."""
    return PERMISSIONS.get(text.strip(), Perm.DENY) if text is not None else Perm.DENY


def permission_text(perm: Perm) -> str:
    """The text of a granted permission; the inverse of `parse_permission`."""
    return next(text for text, known in PERMISSIONS.items() if known == perm)


def is_known_permission(text: str) -> bool:
    """Whether the text is one of the five permission words."""
    return text.strip() in PERMISSIONS


def permits(granted: Perm, required: Perm) -> bool:
    """Whether a granted permission satisfies a required permission."""
    if granted & Perm.DENY:
        return False
    if required & Perm.ANY:
        return bool(granted & (Perm.PUB | Perm.SUB))
    return bool(granted & required)
