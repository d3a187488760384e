"""Messages as files: a JSON object a line, CSV, or a sheet for a spreadsheet program.

No cell is ever a formula: in CSV a text that would begin one gets an apostrophe in front, in XLSX
every cell is written as text. A body is text where it is text, and Base64 where it is not.
"""

from __future__ import annotations

import base64
import csv
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, Protocol

import msgspec
import xlsxwriter

from console.formats import exact
from console.gateway.messages import MessageRef
from console.messages.body import sent_body, text_of

COLUMNS: Final = (
    *("msg_id", "offset_msg_id", "topic", "broker", "queue_id", "queue_offset"),
    *("stored_ms", "stored", "born_ms", "born_host", "tags", "keys", "reconsume_times"),
    *("properties", "body", "body_encoding", "body_is_cut"),
)
#: A cell that begins so is a formula to a spreadsheet program.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
#: What a cell of XLSX holds, and how many rows a sheet does.
CELL_CHARS_MAX: Final = 32_767
SHEET_ROWS_MAX: Final = 1_048_575
SUFFIXES: Final = {"jsonl": "jsonl", "csv": "csv", "xlsx": "xlsx"}
COPY_BYTES: Final = 1024 * 1024


class Output(Protocol):
    """Where bytes of a file go."""

    def write(self, data: bytes, /) -> int: ...


class RowWriter(Protocol):
    """Takes rows one by one."""

    def write(self, row: dict[str, Any]) -> None: ...


def row_of(ref: MessageRef) -> dict[str, Any]:
    """A message as a row of any file."""
    message = ref.message
    body, _compression, _problem = sent_body(message)
    text, encoding = text_of(body)
    if text is None:
        text, encoding = base64.b64encode(body).decode(), "base64"
    host, port = message.born_host
    return {
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "topic": message.topic,
        "broker": ref.broker.name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "stored_ms": message.store_timestamp,
        "stored": exact(message.store_timestamp),
        "born_ms": message.born_timestamp,
        "born_host": f"{host}:{port}",
        "tags": message.tags or "",
        "keys": message.keys,
        "reconsume_times": message.reconsume_times,
        "properties": dict(message.properties),
        "body": text,
        "body_encoding": encoding,
        "body_is_cut": False,
    }


@contextmanager
def writer(kind: str, output: Output) -> Iterator[RowWriter]:
    """The writer of a kind of file; the file is whole when the block ends."""
    if kind == "jsonl":
        yield _JsonLines(output)
    elif kind == "csv":
        yield _Csv(output)
    else:
        with _sheet(output) as sheet:
            yield sheet


class _JsonLines:
    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, row: dict[str, Any]) -> None:
        self._output.write(msgspec.json.encode(row) + b"\n")


class _Csv:
    def __init__(self, output: Output) -> None:
        self._output = output
        # The mark tells spreadsheet programs that the file is UTF-8.
        output.write(b"\xef\xbb\xbf" + _csv_line(COLUMNS))

    def write(self, row: dict[str, Any]) -> None:
        self._output.write(_csv_line([_harmless(_cell(row[name])) for name in COLUMNS]))


class _Sheet:
    def __init__(self, sheet: Any) -> None:
        self._sheet = sheet
        self._row = 0
        for column, name in enumerate(COLUMNS):
            sheet.write_string(0, column, name)

    def write(self, row: dict[str, Any]) -> None:
        self._row += 1
        cells = [_cell(row[name]) for name in COLUMNS]
        if any(len(str(cell)) > CELL_CHARS_MAX for cell in cells):
            cells[COLUMNS.index("body_is_cut")] = True
        for column, cell in enumerate(cells):
            if isinstance(cell, bool):
                self._sheet.write_boolean(self._row, column, cell)
            elif isinstance(cell, int):
                self._sheet.write_number(self._row, column, cell)
            else:
                self._sheet.write_string(self._row, column, cell[:CELL_CHARS_MAX])


@contextmanager
def _sheet(output: Output) -> Iterator[_Sheet]:
    """Rows go to disk as they come; the sheet is packed at the end."""
    with tempfile.TemporaryFile() as file:
        book = xlsxwriter.Workbook(
            file, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        )
        yield _Sheet(book.add_worksheet("messages"))
        book.close()
        file.seek(0)
        _copy(file, output)


def _copy(file: IO[bytes], output: Output) -> None:
    while piece := file.read(COPY_BYTES):
        output.write(piece)


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return value


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def _csv_line(cells: Any) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode("utf-8", "backslashreplace")
