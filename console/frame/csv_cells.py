"""CSV lines for spreadsheet programs, in which no cell is a formula."""

import csv
import io
from collections.abc import Iterable
from typing import Any, Final

#: First characters of formulas in spreadsheet programs, after blanks.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def csv_line(cells: Iterable[Any]) -> str:
    """A line of cells; None becomes an empty cell. A text that starts like a formula gets an
    apostrophe in front: names, keys and bodies come from clients."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow(map(escape_formula, cells))
    return line.getvalue()


def escape_formula(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
