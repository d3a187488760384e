"""Output of commands: lines for people, or JSON for programs.

JSON output has one document per line and nothing else. Most commands print one document; polling
commands print one document per round, and message queries print one per message.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TextIO

from core_broker.remoting.bodies import encode_body

#: One row, by JSON key.
Record = Mapping[str, Any]


#: Control characters except tab and newline: escape sequences in messages could steer a terminal.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Column(NamedTuple):
    """A column of a table: the key in the JSON document, and RocketMQ's column header."""

    key: str
    header: str
    text: Callable[[Any], object] = str


class Table:
    """Columns in RocketMQ's order and widths.

    `layout` formats the rows, `header_layout` the header, where RocketMQ's header differs from the
    rows. The lines are byte-equal with RocketMQ's, for scripts that parse RocketMQ's output.
    """

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
    """The output stream of a command, in the form that --output chose: table or JSON."""

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self.as_json = as_json
        self._stream = stream
        self._is_terminal = stream.isatty()

    def show(self, document: Any, lines: Iterable[str]) -> None:
        """Print the document as JSON, or the lines; JSON output does not iterate over `lines`."""
        if self.as_json:
            self._write(encode_body(document).decode())
        else:
            for line in lines:
                self._write(line)
        self._stream.flush()

    def show_text(self, line: str) -> None:
        """Print a line of table output; JSON output omits the line."""
        if not self.as_json:
            self._write(line)

    def show_json(self, document: Any) -> None:
        """Print the document of JSON output; table output omits the document."""
        self.show(document, ())

    def _write(self, line: str) -> None:
        if self._is_terminal:
            line = _CONTROLS.sub(lambda control: f"\\x{ord(control[0]):02x}", line)
        self._stream.write(line + "\n")


def pretty(document: Any) -> str:
    """Return indented JSON in RocketMQ's layout."""
    plain = json.loads(encode_body(document))
    return json.dumps(plain, indent="\t", separators=(",", ":"), sort_keys=True, ensure_ascii=False)
