"""Masking of audited states: secrets are replaced, and the size is bounded."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import msgspec

HIDDEN = "***"
STATE_CHARS_MAX = 20_000
DEPTH_MAX = 8
#: Field that marks a stored state as cut.
CUT = "cut_to_characters"
SECRET_NAMES = re.compile(
    r"pass(word|wd|phrase)|secret|credential|token|authorization|cookie|signature"
    r"|(access|private|api|encryption|store).?key|key.?store.?pass",
    re.IGNORECASE,
)


def masked(value: Any, depth: int = 0) -> Any:
    """Return plain JSON of a state, with the values of secret fields replaced."""
    if depth > DEPTH_MAX:
        return "…"
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {
            str(name): HIDDEN if _is_secret(str(name), held) else masked(held, depth + 1)
            for name, held in value.items()
        }
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [masked(each, depth + 1) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _is_secret(name: str, value: Any) -> bool:
    """Return True for a secret field name, except for empty and boolean values, which reveal no
    secret.
    """
    return value not in (None, "", True, False) and bool(SECRET_NAMES.search(name))


def kept(value: Any) -> Any:
    """Return the stored form of a state: masked, without NUL, truncated to STATE_CHARS_MAX."""
    if value is None:
        return None
    plain = masked(value)
    text = json.dumps(plain, ensure_ascii=False).replace("\\u0000", "�")
    if len(text) > STATE_CHARS_MAX:
        return {CUT: STATE_CHARS_MAX, "text": text[:STATE_CHARS_MAX]}
    return json.loads(text)
