"""Write rows of a lake's table to Parquet files, one or more per hour, inside a Spark task.

A task writes below the staging folder of its run and reports its files. The driver moves the
reported files to the folders of their hours (`LakeWriter.place`) before the commit. Files of a
failed, repeated or late task stay in the staging folder, which the next run deletes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from spark_jobs.spark.message_index import write_index
from trace.columns import arrow_schema
from trace.lake import HOUR_MS, HourIndex
from trace.tables import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import RecordBatch
    from pyarrow import Table as Rows
    from pyarrow.parquet import ParquetWriter

#: Maximum size of the rows that a task holds before it writes a row group per hour, bytes.
BUFFER_BYTES: Final = 64 * 1024 * 1024
#: Maximum rows of a row group, the unit of reads.
ROWS_PER_GROUP: Final = 65_536
#: Size that ends a file, bytes.
FILE_BYTES: Final = 192 * 1024 * 1024
COMPRESSION: Final = "zstd"
COMPRESSION_LEVEL: Final = 1
#: Columns with an own value in almost every row: a dictionary of their values is only overhead.
DISTINCT_COLUMNS: Final = frozenset({"request_id", "msg_id", "keys", "offset_msg_id", "raw"})
#: Columns with rising values, stored as differences: less CPU time and space than a dictionary.
RISING_COLUMNS: Final = frozenset({"queue_offset", "stored_ms", "event_ms", "timestamp_ms"})

#: A finished file: hour and name in the staging folder.
StagedFile = tuple[HourIndex, str]
#: The distinct hashes of the message ids in some rows.
Hashes = Callable[["Rows"], "NDArray[Any]"]


class HourFiles:
    """The files of one task. The task must call `close`, also after an error.

    `sort_by` is a column that orders the rows written together: its values then select few row
    groups. With `hashes` every file gets an index (`spark_jobs.spark.message_index`).
    """

    def __init__(
        self, staging: Path, table: Table, *, sort_by: str = "", hashes: Hashes | None = None
    ) -> None:
        staging.mkdir(parents=True, exist_ok=True)
        self._staging = staging
        self._table = table
        self._sort_by = sort_by
        self._hashes = hashes
        self._groups: dict[str, list[NDArray[Any]]] = {}
        self._schema = arrow_schema(table)
        self._rows: dict[HourIndex, list[RecordBatch]] = {}
        self._bytes = 0
        self._open: dict[HourIndex, tuple[str, ParquetWriter]] = {}
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
            name, writer = self._open.get(hour) or self._new_file(hour)
            table = pyarrow.Table.from_batches(batches)
            if self._sort_by:
                table = table.sort_by(self._sort_by)
            for begin in range(0, len(table), ROWS_PER_GROUP):
                rows = table.slice(begin, ROWS_PER_GROUP)
                writer.write_table(rows, row_group_size=ROWS_PER_GROUP)
                if self._hashes:
                    self._groups.setdefault(name, []).append(self._hashes(rows))
            self._open[hour] = name, writer
            if (self._staging / name).stat().st_size >= FILE_BYTES:
                self._finish(hour)
        self._rows, self._bytes = {}, 0

    def _new_file(self, hour: HourIndex) -> "tuple[str, ParquetWriter]":
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
        return name, writer

    def _finish(self, hour: HourIndex) -> None:
        name, writer = self._open.pop(hour)
        writer.close()
        if groups := self._groups.pop(name, None):
            write_index(self._staging / name, groups)
        self.finished.append((hour, name))


def _by_hour(batch: "RecordBatch", column: str) -> "Iterator[tuple[HourIndex, RecordBatch]]":
    import numpy

    hours = batch.column(column).to_numpy() // HOUR_MS
    for hour in numpy.unique(hours).tolist():
        mask = hours == hour
        yield hour, batch if mask.all() else batch.filter(mask)
