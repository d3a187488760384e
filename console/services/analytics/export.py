"""Items of the analytics resources as files: CSV, JSON, Parquet. Pure."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpResponse

from console.frame.csv_cells import csv_line

Row = Mapping[str, Any]


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
    lines = [csv_line(rows[0]), *(csv_line(row.values()) for row in rows)]
    return "".join(lines).encode()


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
