"""Java's .properties syntax, as in RocketMQ's broker.conf and the bodies of codes 25 and 318.

One entry per line: the key ends at the first unescaped "=", ":" or blank; lines that start with
"#" or "!" are comments; a backslash at the end of a line continues the line. Escapes are those of
Java, with \\uXXXX for UTF-16 units. Compatible with java.util.Properties.load; the entries have
line numbers for error messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value and its first line, counted from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Entry]:
    """Return the entries in file order, including repeated keys.

    Every text is accepted: an unknown escape means the escaped letter, as in Java. A damaged
    \\uXXXX escape, for which Java throws an exception, is kept unchanged.
    """
    return [_entry(logical, line) for logical, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    pending = ""
    start = 0
    for number, natural in enumerate(_natural_lines(text), 1):
        line = natural.lstrip(_BLANKS)
        if not pending:
            if not line or line[0] in "#!":
                continue
            start = number
        if _ends_in_continuation(line):
            pending += line[:-1]
            continue
        yield pending + line, start
        pending = ""
    if pending:
        yield pending, start


def _natural_lines(text: str) -> list[str]:
    # str.splitlines also splits at characters that are ordinary text to Java.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _ends_in_continuation(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(logical: str, line: int) -> Entry:
    end = _key_end(logical)
    rest = logical[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Entry(_unescape(logical[:end]), _unescape(rest), line)


def _key_end(logical: str) -> int:
    escaped = False
    for index, char in enumerate(logical):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in "=:" or char in _BLANKS:
            return index
    return len(logical)


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw
    out: list[str] = []
    index = 0
    while index < len(raw):
        char = raw[index]
        index += 1
        if char != "\\" or index == len(raw):
            out.append(char)
            continue
        char = raw[index]
        index += 1
        if char != "u":
            out.append(_ESCAPES.get(char, char))
            continue
        digits = raw[index : index + 4]
        if len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            out.append(chr(int(digits, 16)))
            index += 4
        else:
            out.append("\\u")
    joined = "".join(out)
    # Two \u escapes may be the halves of one character outside the basic plane.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
