"""Arrow tables as single values of Spark rows, which Spark moves between tasks unread."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch, Table

Batches = Iterator["RecordBatch"]


def rows_of(values: "Iterable[tuple[Any, ...]]", **types: "DataType") -> "RecordBatch":
    """Rows of a batch; a table becomes a binary value."""
    import pyarrow

    columns: list[list[Any]] = [[] for _ in types]
    for row in values:
        for column, value in zip(columns, row, strict=True):
            column.append(_packed(value) if isinstance(value, pyarrow.Table) else value)
    arrays = [pyarrow.array(*each) for each in zip(columns, types.values(), strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, list(types))


def values_of(batches: Batches) -> "Iterator[tuple[Any, ...]]":
    """The rows of all batches, as Python values."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def unpacked(packed: Sequence[bytes], *more: "Table") -> "Table":
    """The tables of binary values, and `more` tables, as one table."""
    import pyarrow

    tables = [pyarrow.ipc.open_stream(each).read_all() for each in packed]
    return pyarrow.concat_tables([*more, *tables])


def _packed(table: "Table") -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    with pyarrow.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()
