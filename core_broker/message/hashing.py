"""Java's String.hashCode, the hash of RocketMQ's queue selection, index and tag filters.

The hash of s is s[0]*31^(n-1) + … + s[n-1] over UTF-16 units, as a signed 32-bit number.
"""

from array import array
from collections.abc import Sequence
from operator import mul

_WORD = 0xFFFFFFFF
_SIGN_BIT = 0x80000000
_CACHED_POWERS = 256


def _powers(count: int) -> tuple[int, ...]:
    powers = [1] * count
    for index in range(count - 2, -1, -1):
        powers[index] = powers[index + 1] * 31 & _WORD
    return tuple(powers)


# Fewer powers are the end of more powers.
_LONGEST = _powers(_CACHED_POWERS)
_POWERS = tuple(_LONGEST[_CACHED_POWERS - count :] for count in range(_CACHED_POWERS))


def java_string_hash(text: str, seed: int = 0) -> int:
    """Hash of `text`; `seed` is the hash of a preceding prefix, for cached prefixes."""
    units: Sequence[int]
    if text.isascii():
        units = text.encode("ascii")
    else:
        units = array("H", text.encode("utf-16-le", "surrogatepass"))
    count = len(units)
    powers = _POWERS[count] if count < _CACHED_POWERS else _powers(count)
    total: int = sum(map(mul, units, powers))
    if seed and count:
        total += seed * powers[0] * 31
    elif seed:
        total = seed
    return ((total + _SIGN_BIT) & _WORD) - _SIGN_BIT


def tags_code(tags: str | None) -> int:
    """The tags code of a consume-queue unit; 0 without tags."""
    return java_string_hash(tags) if tags else 0
