"""The JSON dialect of fastjson 1.2, with which RocketMQ's Java programs read and write bodies.

Differences from JSON: map keys may be unquoted numbers, or objects:

    {"brokerAddrs":{0:"10.0.0.1:10911"}}
    {"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}

The reader also accepts single quotes, unquoted words as keys, and superfluous commas. Members with
the value null are read as absent. The writer sorts members by name, leaves out None, and writes no
blanks (the Go client splits the raw text at commas and colons). Object keys are always written as
objects, because Java reads no other form. Number keys are quoted in Dialect.STANDARD, which every
client reads, and unquoted in Dialect.FASTJSON.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from core_broker.errors import ProtocolError

#: Maximum nesting depth; RocketMQ's bodies have less than ten levels.
DEPTH_MAX = 64
#: Maximum length of a number, characters: the conversion of longer numbers takes quadratic time.
NUMBER_CHARS_MAX = 400


class Dialect(Enum):
    """The form of number keys in the output."""

    STANDARD = "standard"
    FASTJSON = "fastjson"


class FrozenObject(Mapping[str, Any]):
    """An object as map key: hashable, and equal by content."""

    __slots__ = ("_items", "_members")

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members
        self._items = frozenset(members.items())

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __hash__(self) -> int:
        return hash(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenObject) and self._items == other._items


def loads(data: bytes | str) -> Any:
    """Read one value; raises ProtocolError for text outside of the dialect."""
    try:
        text = data if isinstance(data, str) else bytes(data).decode()
        return _Reader(text).read_all()
    except (ValueError, IndexError, TypeError) as fault:
        raise ProtocolError(f"a body is not JSON: {fault}") from None


_BLANKS = re.compile(r"[ \t\r\n\f\v]*")
_COMMAS = re.compile(r"[ \t\r\n\f\v,]*")
_WORD = re.compile(r"[A-Za-z0-9_$.+\-]+")
_PLAIN = re.compile(r'[^"\'\\]*')
_ESCAPES = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
    '"': '"', "'": "'", "/": "/", "\\": "\\",
}  # fmt: skip
_LITERALS = {"true": True, "false": False, "null": None}


class _Reader:
    """Recursive-descent parser of one text; `at` is the index of the next character."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read_all(self) -> Any:
        value = self.value(0)
        self.skip(_BLANKS)
        if self.at != len(self.text):
            raise ValueError(f"unexpected text after the value at {self.at}")
        return value

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Skip the pattern; returns the next character, "" at the end of the text."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise ValueError(f"more than {DEPTH_MAX} levels deep")
        head = self.skip(_BLANKS)
        if head == "{":
            return self.object(depth + 1)
        if head == "[":
            return self.array(depth + 1)
        if head in {'"', "'"}:
            return self.string(head)
        word = self.word()
        return _LITERALS[word] if word in _LITERALS else _number(word)

    def object(self, depth: int) -> dict[Any, Any]:
        self.at += 1
        members: dict[Any, Any] = {}
        while (head := self.skip(_COMMAS)) != "}":
            name = self.key(head, depth)
            if self.skip(_BLANKS) != ":":
                raise ValueError(f"a colon is missing at {self.at}")
            self.at += 1
            value = self.value(depth)
            if value is None:
                members.pop(name, None)
            else:
                members[name] = value
        self.at += 1
        return members

    def key(self, head: str, depth: int) -> str | FrozenObject:
        if head == "{":
            if depth > DEPTH_MAX:
                raise ValueError(f"more than {DEPTH_MAX} levels deep")
            return FrozenObject(self.object(depth + 1))
        return self.string(head) if head in {'"', "'"} else self.word()

    def array(self, depth: int) -> list[Any]:
        self.at += 1
        items = []
        while self.skip(_COMMAS) != "]":
            items.append(self.value(depth))
        self.at += 1
        return items

    def word(self) -> str:
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise ValueError(f"unexpected {self.text[self.at : self.at + 1]!r} at {self.at}")
        self.at = match.end()
        return match.group()

    def string(self, quote: str) -> str:
        self.at += 1
        parts = []
        while True:
            start = self.at
            head = self.skip(_PLAIN)
            parts.append(self.text[start : self.at])
            self.at += 1
            if head == quote:
                return "".join(parts)
            if head == "\\":
                parts.append(self.escape())
            elif head:
                parts.append(head)
            else:
                raise ValueError("a string does not end")

    def escape(self) -> str:
        kind = self.text[self.at]
        self.at += 1
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        if kind not in {"u", "x"}:
            raise ValueError(f"unknown escape \\{kind} at {self.at}")
        unit = self.hexadecimal(4 if kind == "u" else 2)
        if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 2
            low = self.hexadecimal(4)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            return "\N{REPLACEMENT CHARACTER}" * 2
        return "\N{REPLACEMENT CHARACTER}" if 0xD800 <= unit < 0xE000 else chr(unit)

    def hexadecimal(self, digits: int) -> int:
        text = self.text[self.at : self.at + digits]
        if len(text) != digits:
            raise ValueError("an escape is cut off")
        self.at += digits
        return int(text, 16)


def _number(word: str) -> int | float:
    if len(word) > NUMBER_CHARS_MAX or "_" in word:
        raise ValueError(f"no number of {len(word)} characters")
    try:
        return int(word)
    except ValueError:
        return float(word)


def dumps(value: Any, dialect: Dialect = Dialect.STANDARD) -> bytes:
    """Write a value made of structs, dicts, lists, sets and scalars."""
    parts: list[str] = []
    _write(value, parts.append, dialect is Dialect.STANDARD)
    return "".join(parts).encode("utf-8", "replace")


@cache
def _members(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Attribute and JSON name of each member, in Java's order of output."""
    fields = msgspec.structs.fields(kind)
    pairs = [(field.name, f'"{field.encode_name}":') for field in fields]
    return tuple(sorted(pairs, key=lambda pair: pair[1]))


def _write(value: Any, put: Callable[[str], None], quote_numbers: bool) -> None:
    if value.__class__ in _SCALARS:
        put(_scalar(value))
    elif isinstance(value, msgspec.Struct):
        _write_struct(value, put, quote_numbers)
    elif isinstance(value, dict):
        separator = "{"
        for key, member in value.items():
            put(separator)
            _write_key(key, put, quote_numbers)
            put(":")
            _write(member, put, quote_numbers)
            separator = ","
        put("{}" if separator == "{" else "}")
    elif isinstance(value, _LISTS):
        separator = "["
        for item in sorted(value) if isinstance(value, set | frozenset) else value:
            put(separator)
            _write(item, put, quote_numbers)
            separator = ","
        put("[]" if separator == "[" else "]")
    else:
        put(_scalar(value))


def _write_struct(value: msgspec.Struct, put: Callable[[str], None], quote_numbers: bool) -> None:
    separator = "{"
    for attribute, name in _members(value.__class__):
        member = getattr(value, attribute)
        if member.__class__ in _SCALARS:
            put(separator + name + _scalar(member))
            separator = ","
        elif member is not None:
            put(separator + name)
            _write(member, put, quote_numbers)
            separator = ","
    put("{}" if separator == "{" else "}")


def _write_key(key: Any, put: Callable[[str], None], quote_numbers: bool) -> None:
    if isinstance(key, msgspec.Struct):
        _write(key, put, quote_numbers)
    elif isinstance(key, str) or not quote_numbers:
        put(_scalar(key))
    else:
        put(f'"{key}"')


_SCALARS = frozenset({int, str, bool})
_LISTS = (list, tuple, set, frozenset)
_encode_scalar = msgspec.json.Encoder().encode


def _scalar(value: Any) -> str:
    if value.__class__ is int:
        return str(value)
    if value.__class__ is str and not value.isascii():
        # Java strings may contain half of a surrogate pair; UTF-8 has no form for the half.
        value = value.encode("utf-8", "replace").decode()
    return _encode_scalar(value).decode()
