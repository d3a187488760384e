"""Conversion of property texts by Java's rules for numbers and booleans.

All properties are strings. In a comparison with a number the text is converted to the number's
type; a failing conversion fails the whole expression for the message, as in RocketMQ. Compatible
with Integer.valueOf, Long.valueOf, Double.valueOf, Boolean.valueOf and Double.compare.
"""

import re
from struct import Struct

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_WHOLE = re.compile(r"[+-]?\d{1,4000}")
_DECIMAL = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+[fFdD]?)"
)
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]++\.?+[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++)[fFdD]?"
)
#: The characters removed by Java's String.trim.
_BLANKS = "".join(map(chr, range(33)))

_DOUBLE = Struct(">d")
_BITS = Struct(">q")


class Incomparable(Exception):
    """A property's text cannot be converted to the type of the comparison."""


def int_of(text: str) -> int:
    """Integer.valueOf; raises Incomparable."""
    return _whole(text, INT_MAX)


def long_of(text: str) -> int:
    """Long.valueOf; raises Incomparable."""
    return _whole(text, LONG_MAX)


def double_of(text: str) -> float:
    """Double.valueOf; raises Incomparable."""
    text = text.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
    match = _HEXADECIMAL.fullmatch(text)
    if match is None:
        raise Incomparable(text)
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def boolean_of(text: str) -> bool:
    """Boolean.valueOf: true for "true" in any case, else false."""
    return text.lower() == "true"


def rank(number: float) -> int:
    """An integer with the order of Double.compare: -0.0 below 0.0, NaN above all numbers."""
    if number != number:  # noqa: PLR0124 - only NaN differs from itself
        number = float("nan")
    (bits,) = _BITS.unpack(_DOUBLE.pack(number))
    return int(bits if bits >= 0 else -1 - (bits & LONG_MAX))


def _whole(text: str, largest: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise Incomparable(text)
    number = int(text)
    if not -largest - 1 <= number <= largest:
        raise Incomparable(text)
    return number
