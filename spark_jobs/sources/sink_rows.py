"""Rows of a DataFrame as messages: the columns of a write, and the checks of every row."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import types

from core_broker.client.identity import new_uniq_key
from core_broker.client.sending import check_message
from core_broker.errors import ClientError
from core_broker.message.model import Message
from core_broker.message.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    PROPERTY_UNIQ_KEY,
    RESERVED_PROPERTIES,
    TIMER_PROPERTIES,
)
from spark_jobs.sources.queues import WriteError
from spark_jobs.sources.write_options import WriteOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_TEXT: Final = (types.StringType,)
_WHOLE: Final = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_ORDERING: Final = (*_TEXT, *_WHOLE, types.BooleanType)

#: Columns of a write, with the type that errors name.
SINK_COLUMNS: Final = {
    "body": "binary or string",
    "topic": "string",
    "tags": "string",
    "keys": "string or array<string>",
    "properties": "map<string,string>",
    "queue_id": "tinyint, smallint, int or bigint",
    "broker_name": "string",
}
#: Properties that the sink refuses: names of the system, and delays.
REFUSED_PROPERTIES: Final = RESERVED_PROPERTIES | TIMER_PROPERTIES
#: Rows converted to messages at once.
CHUNK_ROWS: Final = 4096
#: Bytes of Arrow data converted to messages at once; a larger row is converted alone.
CHUNK_BYTES: Final = 8 * 1024 * 1024


class Placement(NamedTuple):
    """The queue of a message: the queue of an ordering value, or a queue by number, or any."""

    order: str | int | None = None
    queue_id: int | None = None
    broker_name: str | None = None


ANY_QUEUE: Final = Placement()
Row = tuple[Message, Placement]


def check_schema(schema: types.StructType, options: WriteOptions) -> None:
    """Raise ClientError for missing or unknown columns, and for columns of the wrong type."""
    names = schema.fieldNames()
    ordering = options.ordering_column
    for name in names:
        if names.count(name) > 1:
            raise ClientError(f"The DataFrame holds the column {name} twice.")
        if name not in SINK_COLUMNS and name != ordering:
            raise ClientError(
                f"A write to rocketmq has no column {name[:80]}; there are "
                f"{', '.join(SINK_COLUMNS)}. Select these columns, or name the column in "
                "orderingColumn."
            )
    for field in schema.fields:
        if field.name in SINK_COLUMNS and not _is_allowed(field.name, field.dataType):
            raise ClientError(
                f"The column {field.name} must be {SINK_COLUMNS[field.name]}, "
                f"not {field.dataType.simpleString()}."
            )
        if field.name == ordering and not isinstance(field.dataType, _ORDERING):
            raise ClientError(
                f"orderingColumn names {ordering}, a column of type "
                f"{field.dataType.simpleString()}; it must be a string, a whole number or a "
                "boolean. Cast the column."
            )
    _check_presence(set(names), options)


def _check_presence(names: set[str], options: WriteOptions) -> None:
    ordering = options.ordering_column
    if "body" not in names:
        raise ClientError("The DataFrame has no column body, the content of the messages.")
    if not options.topic and "topic" not in names:
        raise ClientError("Set the option topic, or give the DataFrame a column topic.")
    if ordering and ordering not in names:
        raise ClientError(f"orderingColumn names {ordering[:80]}, a column that does not exist.")
    if ordering and "queue_id" in names:
        raise ClientError("Give the option orderingColumn or the column queue_id, not both.")
    if "broker_name" in names and "queue_id" not in names:
        raise ClientError("The column broker_name needs the column queue_id.")


def _is_allowed(name: str, kind: types.DataType) -> bool:
    if name == "body":
        return isinstance(kind, types.BinaryType | types.StringType)
    if name == "keys" and isinstance(kind, types.ArrayType):
        return isinstance(kind.elementType, types.StringType)
    if name == "properties":
        return (
            isinstance(kind, types.MapType)
            and isinstance(kind.keyType, types.StringType)
            and isinstance(kind.valueType, types.StringType)
        )
    return isinstance(kind, _WHOLE if name == "queue_id" else _TEXT)


class RowReader:
    """Converts the rows of one task to messages, and counts the rows for the errors."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._row = 0

    def chunks(self, batch: "RecordBatch") -> Iterator[dict[str, list[Row]]]:
        """The messages of a record batch by topic, a bounded number at once, in row order.

        Raises WriteError with the number of the row, the column and the value.
        """
        row_bytes = max(1, batch.nbytes // max(1, batch.num_rows))
        step = max(1, min(CHUNK_ROWS, CHUNK_BYTES // row_bytes))
        for begin in range(0, batch.num_rows, step):
            part = batch.slice(begin, step)
            columns = {
                name: column.to_pylist()
                for name, column in zip(part.schema.names, part.columns, strict=True)
            }
            yield self._by_topic(columns, part.num_rows)

    def _by_topic(self, columns: dict[str, list[Any]], count: int) -> dict[str, list[Row]]:
        by_topic: dict[str, list[Row]] = {}
        nothing = [None] * count
        names = ("topic", "body", "tags", "keys", "properties")
        cells = [columns.get(name, nothing) for name in names]
        if self._options.topic:
            cells[0] = [self._options.topic] * count
        for message_cells, placement in zip(
            zip(*cells, strict=True), self._placements(columns, count), strict=True
        ):
            self._row += 1
            try:
                message = self._message(*message_cells)
            except ClientError as error:
                raise WriteError(f"Row {self._row} of the task: {error}") from None
            by_topic.setdefault(message.topic, []).append((message, placement))
        return by_topic

    def _placements(self, columns: dict[str, list[Any]], count: int) -> Iterable[Placement]:
        ordering = self._options.ordering_column
        if ordering:
            return [Placement(order) for order in columns[ordering]]
        if "queue_id" not in columns:
            return [ANY_QUEUE] * count
        brokers = columns.get("broker_name", [None] * count)
        return [
            Placement(None, queue_id, broker)
            for queue_id, broker in zip(columns["queue_id"], brokers, strict=True)
        ]

    def _message(
        self,
        topic: str | None,
        body: bytes | str | None,
        tags: str | None,
        keys: str | list[str | None] | None,
        properties: list[tuple[str, str | None]] | None,
    ) -> Message:
        if topic is None:
            raise ClientError("The topic is null; set the option topic or filter the row.")
        if body is None:
            raise ClientError(f"The body is null (topic {topic[:127]}); filter the row.")
        if tags:
            _check_tag(tags)
        message = Message(
            topic,
            body.encode() if isinstance(body, str) else body,
            tags=tags,
            keys=_key_text(keys) if keys else (),
        )
        limit = self._options.message_bytes_max
        if len(message.body) > limit:
            raise ClientError(
                f"The body of {len(message.body)} bytes is larger than {limit} bytes (topic "
                f"{topic[:127]}); raise maxMessageBytes, and maxMessageSize of the broker."
            )
        try:
            check_message(message, limit)
        except ClientError as error:
            raise ClientError(f"{error} (topic {topic[:127]!r})") from None
        for name, value in properties or ():
            if name not in REFUSED_PROPERTIES:
                message.properties[name] = _checked_value(name, value)
            elif not self._options.drop_reserved:
                raise ClientError(
                    f"The property {name} is reserved by RocketMQ; remove the property or set "
                    "dropReservedProperties=true."
                )
        # The id is equal in all attempts of the request: consumers detect a duplicate by the id.
        message.properties[PROPERTY_UNIQ_KEY] = new_uniq_key()
        return message


@lru_cache(maxsize=1024)
def _check_tag(tag: str) -> None:
    if "|" in tag or tag != tag.strip() or not tag.isprintable():
        raise ClientError(
            f"The tag {tag[:80]!r} holds '|', a control character, or a space at an end; no "
            "subscription can name the tag."
        )


def _key_text(keys: str | list[str | None]) -> str:
    """The text of the property KEYS: keys separated by spaces."""
    parts = [keys] if isinstance(keys, str) else keys
    for key in parts:
        if not key or not key.isprintable() or (" " in key and parts is keys):
            raise ClientError(
                f"The key {key if key is None else key[:80]!r} is null or empty, or holds a space "
                "or a control character."
            )
    return " ".join(key for key in parts if key)


def _checked_value(name: str, value: str | None) -> str:
    _check_property_name(name)
    if not value or not value.strip():
        raise ClientError(
            f"The property {name[:80]} has no value; RocketMQ drops such properties. Remove the "
            "property from the map."
        )
    if NAME_VALUE_SEPARATOR in value or PROPERTY_SEPARATOR in value:
        raise ClientError(f"The property {name[:80]} holds a separator, character 1 or 2.")
    return value


@lru_cache(maxsize=1024)
def _check_property_name(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise ClientError(f"The property name {name[:80]!r} is blank or holds a control character.")
