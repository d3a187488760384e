"""JSON as RocketMQ's Java side reads and writes it, through fastjson 1.2.

Where it is not JSON: map keys that are numbers stand without quotes, and keys that are objects
stand as objects:

    {"brokerAddrs":{0:"10.0.0.1:10911"}}
    {"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}

The reader takes all of that, single quotes, bare words as keys, and commas too many. Members that
are null read as absent. The writer sorts members by name, leaves out None and writes no blanks
(the Go client cuts raw text at commas and colons). Object keys have no other form that Java reads;
number keys are quoted by Dialect.STANDARD, which every client reads, and bare by Dialect.FASTJSON.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from core_broker.errors import ProtocolError

#: Real bodies nest less than ten deep.
DEPTH_MAX = 64
#: Longer numbers cost more than linear time to convert.
NUMBER_CHARS_MAX = 400


class Dialect(Enum):
    """How number keys are written."""

    STANDARD = "standard"
    FASTJSON = "fastjson"


class FrozenObject(Mapping[str, Any]):
    """An object that stands in key position: equal by content and hashable."""

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
    """Read one value; raises ProtocolError when the text is not even this kind of JSON."""
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
    """Recursive descent over one text; `at` is the next character."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read_all(self) -> Any:
        value = self.value(0)
        self.skip(_BLANKS)
        if self.at != len(self.text):
            raise ValueError(f"something follows the value at {self.at}")
        return value

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Pass over the pattern; returns the character behind it, "" at the end."""
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
    """Attribute and JSON name of each member, in the order in which Java writes them."""
    fields = msgspec.structs.fields(kind)
    pairs = [(field.name, f'"{field.encode_name}":') for field in fields]
    return tuple(sorted(pairs, key=lambda pair: pair[1]))


def _write(value: Any, put: Callable[[str], None], quote_numbers: bool) -> None:
    if value.__class__ in _SCALARS:
        put(_scalar(value))
    elif isinstance(value, msgspec.Struct):
        _write_struct(value, put, quote_numbers)
    elif isinstance(value, dict):
        mark = "{"
        for key, member in value.items():
            put(mark)
            _write_key(key, put, quote_numbers)
            put(":")
            _write(member, put, quote_numbers)
            mark = ","
        put("{}" if mark == "{" else "}")
    elif isinstance(value, _LISTS):
        mark = "["
        for item in sorted(value) if isinstance(value, set | frozenset) else value:
            put(mark)
            _write(item, put, quote_numbers)
            mark = ","
        put("[]" if mark == "[" else "]")
    else:
        put(_scalar(value))


def _write_struct(value: msgspec.Struct, put: Callable[[str], None], quote_numbers: bool) -> None:
    mark = "{"
    for attribute, name in _members(value.__class__):
        member = getattr(value, attribute)
        if member.__class__ in _SCALARS:
            put(mark + name + _scalar(member))
            mark = ","
        elif member is not None:
            put(mark + name)
            _write(member, put, quote_numbers)
            mark = ","
    put("{}" if mark == "{" else "}")


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
        # Java strings may hold half of a surrogate pair, UTF-8 may not.
        value = value.encode("utf-8", "replace").decode()
    return _encode_scalar(value).decode()
