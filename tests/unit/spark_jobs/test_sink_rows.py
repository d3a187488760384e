"""Writes to the data source: options, columns and rows, and the errors for wrong ones."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructType,
)

from core_broker.errors import ClientError
from spark_jobs.sources import sink_rows
from spark_jobs.sources.queues import WriteError
from spark_jobs.sources.sink_rows import SINK_COLUMNS, Placement, RowReader, check_schema
from spark_jobs.sources.write_options import WRITE_OPTION_NAMES, WriteOptions, write_options

OPTIONS = WriteOptions(namesrv="a:1", topic="orders")
TYPES: dict[str, pyarrow.DataType] = {
    "keys": pyarrow.list_(pyarrow.string()),
    "properties": pyarrow.map_(pyarrow.string(), pyarrow.string()),
    "queue_id": pyarrow.int32(),
}


def schema(**columns: Any) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


def batch(**columns: list[Any]) -> pyarrow.RecordBatch:
    arrays = [pyarrow.array(values, TYPES.get(name)) for name, values in columns.items()]
    return pyarrow.RecordBatch.from_arrays(arrays, list(columns))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"namesrv": ""}, "needs the option namesrv"),
        ({"topc": "orders"}, "Did you mean topic"),
        ({"startingOffsets": "latest"}, "no option startingOffsets"),
        ({"path": "/orders"}, "no option path"),
        ({"topic": "orders paid"}, "topic holds 'orders paid'.*illegal characters"),
        ({"group": "a b"}, "group holds 'a b'"),
        ({"maxRequestsInFlight": "0"}, "maxRequestsInFlight must be a number"),
        ({"maxRequestsInFlight": "257"}, "maxRequestsInFlight must be at most 256"),
        ({"maxMessageBytes": "99999999"}, "maxMessageBytes must be at most"),
        ({"maxRequestBytes": "9999999"}, "maxRequestBytes must be at most maxMessageBytes"),
        ({"dropReservedProperties": "yes"}, "must be true or false"),
        ({"secretKey": "s"}, "go together"),
        ({"retryTimeoutMs": "soon"}, "retryTimeoutMs must be a number"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        write_options({"namesrv": "a:1", **wrong})


def test_options_of_spark_itself_are_ignored() -> None:
    given = {"namesrv": "a:1", "checkpointLocation": "/c", "queryName": "q", "TOPIC": "orders"}
    assert write_options(given) == OPTIONS


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"tags": StringType()}, {}, "no column body"),
        ({"body": DoubleType()}, {}, "body must be binary or string, not double"),
        ({"body": BinaryType(), "price": DoubleType()}, {}, "no column price; there are body"),
        ({"body": StringType()}, {"topic": ""}, "Set the option topic"),
        ({"body": StringType(), "tags": IntegerType()}, {}, "tags must be string, not int"),
        ({"body": StringType(), "keys": ArrayType(IntegerType())}, {}, "keys must be string or"),
        (
            {"body": StringType(), "properties": MapType(StringType(), IntegerType())},
            {},
            "properties must be map<string,string>, not map<string,int>",
        ),
        ({"body": StringType(), "broker_name": StringType()}, {}, "needs the column queue_id"),
        ({"body": StringType()}, {"ordering_column": "id"}, "names id, a column that does not"),
        ({"body": BinaryType()}, {"ordering_column": "body"}, "names body, a column of type"),
        (
            {"body": StringType(), "queue_id": IntegerType()},
            {"ordering_column": "queue_id"},
            "not both",
        ),
    ],
)
def test_wrong_columns_are_refused(
    columns: dict[str, Any], options: dict[str, str], said: str
) -> None:
    with pytest.raises(ClientError, match=said):
        check_schema(
            schema(**columns), WriteOptions(namesrv="a:1", **{"topic": "orders", **options})
        )


def test_a_column_twice_is_refused() -> None:
    twice = schema(body=StringType()).add("body", StringType())
    with pytest.raises(ClientError, match="holds the column body twice"):
        check_schema(twice, OPTIONS)


def test_rows_become_messages() -> None:
    rows = batch(
        topic=["a", "b", "a"],
        body=["one", "two", "drei"],
        tags=["T", None, ""],
        keys=[["k1", "k2"], None, []],
        properties=[[("city", "Bern")], None, []],
        queue_id=[3, None, 0],
    )
    [made] = RowReader(WriteOptions(namesrv="a:1")).chunks(rows)
    assert {topic: [m.body for m, _ in found] for topic, found in made.items()} == {
        "a": [b"one", b"drei"],
        "b": [b"two"],
    }
    (first, place), (last, _) = made["a"]
    assert (first.tags, first.keys, first.properties["city"]) == ("T", ["k1", "k2"], "Bern")
    assert place == Placement(None, 3, None)
    assert (last.tags, last.keys) == (None, [])
    assert first.msg_id != last.msg_id
    assert made["b"][0][1] == Placement()


def test_the_option_topic_precedes_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_rows, "CHUNK_ROWS", 2)
    rows = batch(topic=["a", "b", "c"], body=["1", "2", "3"])
    made = list(RowReader(OPTIONS).chunks(rows))
    assert [[m.body for m, _ in chunk["orders"]] for chunk in made] == [[b"1", b"2"], [b"3"]]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"body": None}, r"Row 2 of the task: The body is null \(topic orders\); filter"),
        ({"body": ""}, "The message body is empty"),
        ({"body": "x" * 101}, "larger than 100 bytes.*raise maxMessageBytes, and maxMessageSize"),
        ({"topic": None}, "The topic is null"),
        ({"topic": "a b"}, "illegal characters.*'a b'"),
        ({"topic": "a\n"}, "illegal characters"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "forbidden"),
        ({"topic": "t" * 200}, "longer than topic max length"),
        ({"tags": "a|b"}, "tag 'a|b' holds"),
        ({"tags": "a\x01"}, "holds .*a control character"),
        ({"tags": " a"}, "a space at an end"),
        ({"keys": ["a b"]}, "key 'a b' is null or empty, or holds a space"),
        ({"keys": [None]}, "key None"),
        ({"keys": ["a\x02"]}, "control character"),
        ({"properties": [("UNIQ_KEY", "1")]}, "UNIQ_KEY is reserved.*dropReservedProperties"),
        ({"properties": [("TIMER_DELAY_SEC", "1")]}, "TIMER_DELAY_SEC is reserved"),
        ({"properties": [("a\x01b", "1")]}, "name 'a\\\\x01b' is blank or holds a control"),
        ({"properties": [("", "1")]}, "is blank"),
        ({"properties": [("a", "1\x02TAGS\x01x")]}, "property a holds a separator"),
        ({"properties": [("a", None)]}, "property a has no value"),
    ],
)
def test_wrong_rows_are_refused(cells: dict[str, Any], said: str) -> None:
    values: dict[str, list[Any]] = {
        "topic": ["orders", "orders"],
        "body": ["fine", "fine"],
        **{name: [None, value] for name, value in cells.items() if name not in {"topic", "body"}},
    }
    for name in {"topic", "body"} & cells.keys():
        values[name][1] = cells[name]
    reader = RowReader(WriteOptions(namesrv="a:1", message_bytes_max=100))
    with pytest.raises(WriteError, match=said) as raised:
        list(reader.chunks(batch(**values)))
    assert str(raised.value).startswith("Row 2 of the task: ")


def test_reserved_properties_can_be_dropped() -> None:
    rows = batch(body=["b"], properties=[[("UNIQ_KEY", "1"), ("TAGS", "T"), ("mine", "2")]])
    [made] = RowReader(WriteOptions(namesrv="a:1", topic="orders", drop_reserved=True)).chunks(rows)
    [(message, _)] = made["orders"]
    assert (message.properties["mine"], message.tags) == ("2", None)
    assert message.msg_id != "1"


def test_the_documents_name_every_option_and_column() -> None:
    text = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert [name for name in (*WRITE_OPTION_NAMES, *SINK_COLUMNS) if f"`{name}`" not in text] == []
