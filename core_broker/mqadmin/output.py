"""What a command prints: lines for people, or JSON for programs.

JSON is one document a line and nothing else. Most commands print one; those that look again and
again, and those that print messages, print one for each look and for each message.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TextIO

from core_broker.remoting.bodies import encode_body

#: One row, by JSON key.
Record = Mapping[str, Any]


#: What a message or a name may hold to make a terminal do things; tabs and line ends are harmless.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Column(NamedTuple):
    """A column of a table under RocketMQ's header; the key is that of the JSON document."""

    key: str
    header: str
    text: Callable[[Any], object] = str


class Table:
    """Columns in RocketMQ's order and widths. The layout is that of its rows; where RocketMQ lays
    out the header otherwise, so is it here, for scripts know the lines by their bytes."""

    def __init__(
        self, layout: str, columns: Iterable[Column], header_layout: str | None = None
    ) -> None:
        self.columns = tuple(columns)
        self._layout = layout
        self._header_layout = header_layout or layout

    def header(self) -> str:
        return self._header_layout % tuple(column.header for column in self.columns)

    def row(self, record: Record) -> str:
        return self._layout % tuple(column.text(record[column.key]) for column in self.columns)

    def lines(self, records: Iterable[Record]) -> Iterator[str]:
        yield self.header()
        yield from map(self.row, records)


class Output:
    """Where a command prints; `show` takes both forms and prints the one that was asked for."""

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self.as_json = as_json
        self._stream = stream
        self._is_terminal = stream.isatty()

    def show(self, document: Any, lines: Iterable[str]) -> None:
        """Print the document as JSON, or the lines, which are made only when they are wanted."""
        if self.as_json:
            self._write(encode_body(document).decode())
        else:
            for line in lines:
                self._write(line)
        self._stream.flush()

    def say(self, line: str) -> None:
        """Print a line that is for people only."""
        if not self.as_json:
            self._write(line)

    def show_json(self, document: Any) -> None:
        """Print the document where JSON was asked for; people have been told in lines."""
        self.show(document, ())

    def _write(self, line: str) -> None:
        if self._is_terminal:
            line = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", line)
        self._stream.write(line + "\n")


def pretty(document: Any) -> str:
    """JSON for people, over many lines, as RocketMQ lays it out."""
    plain = json.loads(encode_body(document))
    return json.dumps(plain, indent="\t", separators=(",", ":"), sort_keys=True, ensure_ascii=False)
