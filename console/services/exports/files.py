"""Rows as files: a JSON object a line, CSV, or a sheet for a spreadsheet program.

    with writer("csv", file, ("name", "lag"), cut="is_cut") as writing:
        writing.write({"name": "orders", "lag": 7, "is_cut": False})

No cell is ever a formula: in CSV a text that would begin one gets an apostrophe in front, in XLSX
every text is written as text. What is None is null in JSON, and an empty cell elsewhere.
"""

import csv
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, Protocol

import msgspec
import xlsxwriter

#: The kinds of files, which are their suffixes too.
FORMATS: Final = {"jsonl": "JSON Lines", "csv": "CSV", "xlsx": "XLSX"}
ROWS_MAX: Final = 1_000_000
ROWS_USUAL: Final = 100_000
#: Programs that open sheets want all of one in memory.
SHEET_ROWS_MAX: Final = 200_000
#: A cell that begins so is a formula to a spreadsheet program.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
#: What a cell of XLSX holds.
CELL_CHARS_MAX: Final = 32_767
COPY_BYTES: Final = 1024 * 1024


class Output(Protocol):
    """Where bytes of a file go."""

    def write(self, data: bytes, /) -> int: ...


class RowWriter(Protocol):
    """Takes rows one by one."""

    def write(self, row: dict[str, Any]) -> None: ...


@contextmanager
def writer(kind: str, output: Output, columns: Sequence[str], *, cut: str) -> Iterator[RowWriter]:
    """The writer of a kind of file; the file is whole when the block ends. `cut` is the column that
    becomes true in a row one of whose texts was too long for a cell."""
    if kind == "jsonl":
        yield _JsonLines(output)
    elif kind == "csv":
        yield _Csv(output, columns)
    else:
        with _sheet(output, columns, cut) as sheet:
            yield sheet


class _JsonLines:
    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, row: dict[str, Any]) -> None:
        self._output.write(msgspec.json.encode(row) + b"\n")


class _Csv:
    def __init__(self, output: Output, columns: Sequence[str]) -> None:
        self._output = output
        self._columns = columns
        # The mark tells spreadsheet programs that the file is UTF-8.
        output.write(b"\xef\xbb\xbf" + _csv_line(columns))

    def write(self, row: dict[str, Any]) -> None:
        self._output.write(_csv_line([_harmless(_cell(row[name])) for name in self._columns]))


class _Sheet:
    def __init__(self, sheet: Any, columns: Sequence[str], cut: str) -> None:
        self._sheet = sheet
        self._columns = columns
        self._cut = columns.index(cut)
        self._row = 0
        for column, name in enumerate(columns):
            sheet.write_string(0, column, name)

    def write(self, row: dict[str, Any]) -> None:
        self._row += 1
        cells = [_cell(row[name]) for name in self._columns]
        if any(len(str(cell)) > CELL_CHARS_MAX for cell in cells):
            cells[self._cut] = True
        for column, cell in enumerate(cells):
            if isinstance(cell, bool):
                self._sheet.write_boolean(self._row, column, cell)
            elif isinstance(cell, int | float):
                self._sheet.write_number(self._row, column, cell)
            elif cell is not None:
                self._sheet.write_string(self._row, column, cell[:CELL_CHARS_MAX])


@contextmanager
def _sheet(output: Output, columns: Sequence[str], cut: str) -> Iterator[_Sheet]:
    """Rows go to disk as they come; the sheet is packed at the end."""
    with tempfile.TemporaryFile() as file:
        book = xlsxwriter.Workbook(
            file, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        )
        yield _Sheet(book.add_worksheet("rows"), columns, cut)
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
