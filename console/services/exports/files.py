"""Row files: JSON Lines, CSV, or XLSX.

    with writer("csv", file, ("name", "lag"), cut="is_cut") as writing:
        writing.write({"name": "orders", "lag": 7, "is_cut": False})

Cells never hold formulas: a CSV text that starts like a formula gets an apostrophe in front, XLSX
cells have the type text. None becomes null in JSON, and an empty cell in CSV and XLSX.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, Protocol

import msgspec
import xlsxwriter

from console.frame.csv_cells import csv_line

#: File formats by file name suffix.
FORMATS: Final = {"jsonl": "JSON Lines", "csv": "CSV", "xlsx": "XLSX"}
#: Maximum row count of a file.
ROWS_MAX: Final = 1_000_000
#: Default of the maximum row count in forms and the API.
ROWS_USUAL: Final = 100_000
#: Maximum row count of an XLSX file: spreadsheet programs load the whole file into memory.
SHEET_ROWS_MAX: Final = 200_000
#: Maximum text length of an XLSX cell, characters.
CELL_CHARS_MAX: Final = 32_767
#: Block size of file copies, bytes.
COPY_BYTES: Final = 1024 * 1024


class Output(Protocol):
    """A binary file, or another receiver of bytes."""

    def write(self, data: bytes, /) -> int: ...


class RowWriter(Protocol):
    """A writer of rows, in file order."""

    def write(self, row: dict[str, Any]) -> None: ...


@contextmanager
def writer(kind: str, output: Output, columns: Sequence[str], *, cut: str) -> Iterator[RowWriter]:
    """A writer for the format `kind`; the file is complete at the end of the block.

    `cut` names the column that is true in rows with a text truncated to the cell limit (XLSX).
    """
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
        # Spreadsheet programs detect UTF-8 by the byte-order mark.
        output.write(b"\xef\xbb\xbf" + _encoded(columns))

    def write(self, row: dict[str, Any]) -> None:
        self._output.write(_encoded([_cell(row[name]) for name in self._columns]))


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
    """A sheet in constant memory: rows go to a temporary file, packed as XLSX at the end."""
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


def _encoded(cells: Sequence[Any]) -> bytes:
    return csv_line(cells).encode("utf-8", "backslashreplace")
