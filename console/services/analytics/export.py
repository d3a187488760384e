"""Items of the analytics resources as files: CSV, JSON, Parquet. Pure."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpResponse

Row = Mapping[str, Any]

#: First characters of formulas in spreadsheets; names in traces come from clients.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """Nested values as columns: latency.p50 becomes latency_p50."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            columns |= flat(value, f"{prefix}{name}_")
        else:
            columns[f"{prefix}{name}"] = value
    return columns


def as_csv(rows: Sequence[Row]) -> bytes:
    """CSV with a header line; unknown values are empty fields."""
    if not rows:
        return b""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _escape_formula(value) for name, value in row.items()})
    return text.getvalue().encode()


def _escape_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def as_json(rows: Sequence[Row]) -> bytes:
    return json.dumps(list(rows), ensure_ascii=False, indent=1).encode()


def as_parquet(rows: Sequence[Row]) -> bytes:
    import pyarrow as pa  # a slow import, needed for Parquet only
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), sink)
    return sink.getvalue()


FORMATS: Final[Mapping[str, tuple[str, Callable[[Sequence[Row]], bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
}


def download(name: str, kind: str, rows: Sequence[Row]) -> HttpResponse:
    """The rows as a file download."""
    content_type, write = FORMATS[kind]
    response = HttpResponse(write([flat(row) for row in rows]), content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response
