"""Write rows of a lake's table to Parquet files, one or more per hour, inside a Spark task.

A task writes below the staging folder of its run and reports its files. The driver moves the
reported files to the folders of their hours (`LakeWriter.place`) before the commit. Files of a
failed, repeated or late task stay in the staging folder, which the next run deletes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from trace.columns import arrow_schema
from trace.lake import HOUR_MS, HourIndex
from trace.tables import Table

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetWriter

#: Maximum size of the rows that a task holds before it writes a row group per hour, bytes.
BUFFER_BYTES: Final = 64 * 1024 * 1024
#: Rows that end a file. A row of events takes 10 to 30 bytes.
ROWS_PER_FILE: Final = 8_000_000
COMPRESSION: Final = "zstd"
COMPRESSION_LEVEL: Final = 1
#: Columns with an own value in almost every row: a dictionary of their values is only overhead.
DISTINCT_COLUMNS: Final = frozenset({"request_id", "msg_id", "keys", "offset_msg_id", "raw"})
#: Columns with rising values, stored as differences: less CPU time and space than a dictionary.
RISING_COLUMNS: Final = frozenset({"queue_offset", "stored_ms", "event_ms", "timestamp_ms"})

#: A finished file: hour and name in the staging folder.
StagedFile = tuple[HourIndex, str]


class HourFiles:
    """The files of one task. The task must call `close`, also after an error."""

    def __init__(self, staging: Path, table: Table) -> None:
        staging.mkdir(parents=True, exist_ok=True)
        self._staging = staging
        self._table = table
        self._schema = arrow_schema(table)
        self._rows: dict[HourIndex, list[RecordBatch]] = {}
        self._bytes = 0
        self._open: dict[HourIndex, tuple[str, int, ParquetWriter]] = {}
        #: The files that were finished so far.
        self.finished: list[StagedFile] = []

    def add(self, batch: "RecordBatch") -> None:
        """Add rows of any hours, with the columns of the table."""
        for hour, rows in _by_hour(batch, self._table.time_column):
            self._rows.setdefault(hour, []).append(rows)
        self._bytes += batch.nbytes
        if self._bytes >= BUFFER_BYTES:
            self._write()

    def close(self) -> None:
        """Write the remaining rows and finish all files."""
        self._write()
        for hour in list(self._open):
            self._finish(hour)

    def _write(self) -> None:
        import pyarrow

        for hour, batches in self._rows.items():
            name, rows, writer = self._open.get(hour) or self._new_file(hour)
            table = pyarrow.Table.from_batches(batches)
            writer.write_table(table, row_group_size=table.num_rows)
            self._open[hour] = name, rows + table.num_rows, writer
            if rows + table.num_rows >= ROWS_PER_FILE:
                self._finish(hour)
        self._rows, self._bytes = {}, 0

    def _new_file(self, hour: HourIndex) -> "tuple[str, int, ParquetWriter]":
        from pyarrow.parquet import ParquetWriter

        name = f"{hour}-{uuid4().hex}.parquet"
        rising = RISING_COLUMNS.intersection(self._table.names)
        distinct = DISTINCT_COLUMNS | rising
        writer = ParquetWriter(
            self._staging / name,
            self._schema,
            compression=COMPRESSION,
            compression_level=COMPRESSION_LEVEL,
            use_dictionary=[name for name in self._table.names if name not in distinct],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        )
        return name, 0, writer

    def _finish(self, hour: HourIndex) -> None:
        name, _rows, writer = self._open.pop(hour)
        writer.close()
        self.finished.append((hour, name))


def _by_hour(batch: "RecordBatch", column: str) -> "Iterator[tuple[HourIndex, RecordBatch]]":
    import numpy

    hours = batch.column(column).to_numpy() // HOUR_MS
    for hour in numpy.unique(hours).tolist():
        mask = hours == hour
        yield hour, batch if mask.all() else batch.filter(mask)
