"""Changed fields of an audit row: each with its path and its value before and after.

The state after an action names the fields that the action set: a field of the state before that is
absent there is unchanged, except after a deletion, which has no state after. A new field without a
value (null) is no change. Nested values are compared completely. A state that was cut for its size
(`masking.kept`) has no fields.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from console.audit.masking import CUT

#: Changed fields that a page shows.
FIELDS_MAX: Final = 200
#: Characters of a value in the table; the rest is behind a disclosure.
VALUE_CHARS_MAX: Final = 120

_ABSENT: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Value:
    """One value as text; `short` is its beginning when the value is long."""

    text: str
    short: str = ""


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A field with its values; None where the field does not exist."""

    path: tuple[str, ...]
    before: Value | None
    after: Value | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The first FIELDS_MAX changed fields, and whether there are more."""

    fields: tuple[ChangedField, ...]
    is_cut: bool


def changes_of(before: Any, after: Any) -> Changes:
    """Compare two stored states (plain JSON, None without a state)."""
    if not (_has_fields(before) and _has_fields(after)):
        return Changes((), is_cut=False)
    found = tuple(islice(_between(before, after), FIELDS_MAX + 1))
    return Changes(found[:FIELDS_MAX], len(found) > FIELDS_MAX)


def _has_fields(state: Any) -> bool:
    return state is None or (isinstance(state, Mapping) and CUT not in state)


def _between(before: Any, after: Any) -> Iterator[ChangedField]:
    old, new = before or {}, after or {}
    for name in old if after is None else new:
        if name in old or new[name] is not None:
            yield from _compared((name,), old.get(name, _ABSENT), new.get(name, _ABSENT))


def _compared(path: tuple[str, ...], before: Any, after: Any) -> Iterator[ChangedField]:
    old, new = _children(before), _children(after)
    if (
        (old or new)
        and (before is _ABSENT or old is not None)
        and (after is _ABSENT or new is not None)
    ):
        old, new = old or {}, new or {}
        for name in {**old, **new}:
            yield from _compared((*path, name), old.get(name, _ABSENT), new.get(name, _ABSENT))
    elif before is _ABSENT or after is _ABSENT or before != after:
        yield ChangedField(path, _value(before), _value(after))


def _children(value: Any) -> dict[str, Any] | None:
    """The nested fields of a value; items of a list with objects are numbered from 1."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        return {str(number): each for number, each in enumerate(value, 1)}
    return None


def _value(value: Any) -> Value | None:
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if value == "":
        text = '""'
    return Value(text, text[:VALUE_CHARS_MAX] if len(text) > VALUE_CHARS_MAX else "")
