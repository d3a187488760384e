"""The columns of the data source, and the conversion of messages to Arrow batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt

if TYPE_CHECKING:
    import pyarrow


class Column(NamedTuple):
    """A column: type in Spark, type in Arrow, and its value for a message."""

    spark_type: str
    arrow_type: str
    value: Callable[[MessageExt], Any]


def decompressed(body: bytes, sys_flag: int) -> bytes:
    """The decompressed body; the stored body when it is not compressed, or malformed."""
    if not sys_flag & sysflag.COMPRESSED:
        return body
    try:
        return decompress(body, sys_flag)
    except (ProtocolError, ClientError):
        return body


#: `body` is decompressed; a body that cannot be decompressed stays as stored.
COLUMNS: Final[dict[str, Column]] = {
    "topic": Column("string", "string", lambda m: m.topic),
    "broker_name": Column("string", "string", lambda m: m.broker_name),
    "queue_id": Column("int", "int32", lambda m: m.queue_id),
    "queue_offset": Column("bigint", "int64", lambda m: m.queue_offset),
    "msg_id": Column("string", "string", lambda m: m.msg_id),
    "offset_msg_id": Column("string", "string", lambda m: m.offset_msg_id),
    "tags": Column("string", "string", lambda m: m.tags),
    "keys": Column("array<string>", "list", lambda m: m.keys),
    "body": Column("binary", "binary", lambda m: decompressed(m.body, m.sys_flag)),
    "properties": Column("map<string,string>", "map", lambda m: list(m.properties.items())),
    "born_timestamp": Column("timestamp", "timestamp", lambda m: m.born_timestamp * 1000),
    "store_timestamp": Column("timestamp", "timestamp", lambda m: m.store_timestamp * 1000),
    "born_host": Column("string", "string", lambda m: m.born_host[0]),
    "reconsume_times": Column("int", "int32", lambda m: m.reconsume_times),
    "flag": Column("int", "int32", lambda m: m.flag),
    "sys_flag": Column("int", "int32", lambda m: m.sys_flag),
    "store_size": Column("int", "int32", lambda m: m.store_size),
    "physical_offset": Column("bigint", "int64", lambda m: m.offset_physical),
}


def spark_schema(names: Sequence[str] = (), columns: Mapping[str, Column] = COLUMNS) -> str:
    """The Spark schema of `names`, or of all columns."""
    return ", ".join(f"{name} {columns[name].spark_type}" for name in names or columns)


def arrow_type(column: Column) -> "pyarrow.DataType":
    """The Arrow type of a column."""
    import pyarrow

    types = {
        "list": pyarrow.list_(pyarrow.string()),
        "map": pyarrow.map_(pyarrow.string(), pyarrow.string()),
        "timestamp": pyarrow.timestamp("us", tz="UTC"),
    }
    return types.get(column.arrow_type) or pyarrow.type_for_alias(column.arrow_type)


def to_arrow(messages: Sequence[MessageExt], names: Sequence[str]) -> "pyarrow.RecordBatch":
    """A record batch with the columns `names`, a row per message."""
    import pyarrow

    arrays = []
    for name in names:
        column = COLUMNS[name]
        values = [column.value(message) for message in messages]
        arrays.append(pyarrow.array(values, arrow_type(column)))
    return pyarrow.RecordBatch.from_arrays(arrays, list(names))
