"""Bodies decoded by Protobuf and Avro schemas: values, framings, bounds, hostile input."""

import io
import json
import random
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from console.areas.messages.body import BodyForm, preview, view_body
from console.gateway.messages.filters import BodyTest, MessageFilter
from console.gateway.messages.schemas.avro import AvroSchema
from console.gateway.messages.schemas.bounds import BODY_BYTES_MAX, VALUES_MAX, SchemaError
from console.gateway.messages.schemas.decoder import BodyRule, Decoder, Format, read_schema
from console.gateway.messages.schemas.framing import Framing
from console.gateway.messages.schemas.protobuf import ProtobufSchema
from core_broker.message.model import MessageExt
from tests.unit.console.body_schemas import ORDER_AVRO, message_of, order_bytes, order_set

ORDER = "shop.v1.Order"


def rule(
    pattern: str = "orders*",
    kind: Format = Format.PROTOBUF,
    type_name: str = ORDER,
    framing: Framing = Framing.RAW,
    content: bytes = b"",
) -> BodyRule:
    content = content or (order_set() if kind is Format.PROTOBUF else ORDER_AVRO)
    return BodyRule(pattern, kind, type_name, framing, "digest", read_schema(kind, content))


def decoded(body: bytes, *rules: BodyRule, topic: str = "orders") -> Any:
    found = Decoder(rules or (rule(),)).decode(message_of(body, topic))
    assert found is not None
    return found.misfit or json.loads(found.text)


@pytest.mark.must_beat(33)
def test_a_protobuf_body_is_shown_as_a_tree_with_its_type() -> None:
    body = order_bytes(id=7, customer="Zoë", total=9.5, tags={"vip": True}, state=1)
    message, decoder = message_of(body, "orders"), Decoder((rule(),))
    view = view_body(message, BodyForm.TREE, decoder)
    assert view.form is BodyForm.TREE
    assert view.encoding == f"Protobuf {ORDER}"
    assert '<span class="number">7</span>' in view.tree
    assert "PAID" in view.tree
    assert view.forms == (BodyForm.TREE, BodyForm.JSON, BodyForm.HEX, BodyForm.BASE64)
    assert json.loads(view_body(message, BodyForm.JSON, decoder).text) == {
        "id": 7,
        "customer": "Zoë",
        "total": 9.5,
        "tags": {"vip": True},
        "state": "PAID",
    }
    assert preview(message, decoder).startswith('{"id": 7, "customer": "Zoë"')


@pytest.mark.must_beat(33)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"id": 7}', "not a shop.v1.Order"),
        (b"\x0a\x01x", "no field of shop.v1.Order"),
        (order_bytes(id=7) + b"\x12\x02\xff\xfe", "not a shop.v1.Order"),
        (order_bytes(id=7) + b"\x10\x05", "another wire type"),
    ],
)
def test_a_body_that_does_not_fit_is_shown_in_hex_with_the_reason(body: bytes, reason: str) -> None:
    message, decoder = message_of(body, "orders"), Decoder((rule(),))
    view = view_body(message, BodyForm.TEXT, decoder)
    assert view.form is BodyForm.HEX
    assert view.forms == (BodyForm.HEX, BodyForm.BASE64)
    assert reason in view.misfit
    assert preview(message, decoder) == body[:24].hex(" ")


def test_unknown_fields_beside_known_ones_are_newer_versions_of_the_type() -> None:
    assert decoded(order_bytes(id=7) + b"\xa2\x06\x01x") == {"id": 7}


def test_framings() -> None:
    one, two = order_bytes(id=1), order_bytes(id=2)
    by_length = rule(framing=Framing.DELIMITED)
    assert decoded(bytes([len(one)]) + one, by_length) == {"id": 1}
    assert decoded(bytes([len(one)]) + one + bytes([len(two)]) + two, by_length) == [
        {"id": 1},
        {"id": 2},
    ]
    assert "is announced" in decoded(b"\x7f" + one, by_length)
    confluent = rule(framing=Framing.CONFLUENT)
    assert decoded(b"\0\0\0\0\x2a\0" + one, confluent) == {"id": 1}
    # The indexes [1] name the second type of the file, whatever the rule says.
    found = Decoder((confluent,)).decode(message_of(b"\0\0\0\0\x2a\x02\x02\x0a\x01x", "orders"))
    assert found is not None
    assert (found.text, found.label) == (
        '{"reason": "x"}',
        "Protobuf shop.v1.Refund · schema ID 42",
    )
    assert "Confluent" in decoded(one, confluent)
    assert "no message type" in decoded(b"\0\0\0\0\x2a\x02\x7e" + one, confluent)


def test_avro_values_are_those_of_the_library() -> None:
    written = io.BytesIO()
    record = {
        "id": 7,
        "note": None,
        "amounts": {"net": 1.5},
        "price": Decimal("12.34"),
        "raw": b"\1",
    }
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(ORDER_AVRO)), record)
    avro = rule(kind=Format.AVRO, type_name="")
    assert decoded(written.getvalue(), avro) == record | {"price": "12.34", "raw": "AQ=="}
    framed = rule(kind=Format.AVRO, type_name="", framing=Framing.CONFLUENT)
    assert decoded(b"\0\0\0\0\1" + written.getvalue(), framed)["id"] == 7
    assert "1 bytes follow" in decoded(written.getvalue() + b"\0", avro)
    assert "ends within" in decoded(b"", avro)


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        # A list of 100,000 records, one byte each: crashes the compiled reader of fastavro.
        (
            {"type": "record", "name": "A", "fields": [{"name": "n", "type": ["null", "A"]}]},
            b"\x02" * 100_000 + b"\0",
            "nested deeper",
        ),
        # A record that contains itself needs no bytes at all.
        ({"type": "record", "name": "A", "fields": [{"name": "n", "type": "A"}]}, b"", "nested"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "more than"),
        (
            {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
            "more than",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "no symbol -1"),
        (["null", "int"], b"\x01", "no branch -1"),
        ("string", b"\x03", "bytes are announced"),
        ("string", b"\xff" * 11, "more than 10 bytes"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xfe" + b"\xff" * 8 + b"\1",
            "not a",
        ),
    ],
)
def test_hostile_avro_ends_with_a_reason(schema: Any, body: bytes, reason: str) -> None:
    avro = rule(kind=Format.AVRO, type_name="", content=json.dumps(schema).encode())
    assert reason in decoded(body, avro)


def test_a_deep_protobuf_body_and_one_of_many_values_end_with_a_reason() -> None:
    deep = b""
    for _level in range(90):
        size = len(deep)
        head = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
        deep = b"\x2a" + head + deep
    assert "nested deeper" in decoded(deep)
    assert "more than" in decoded(b"\x2a\0" + b"\x32\0" * (VALUES_MAX + 1))
    assert "larger than" in decoded(b"\x12" + bytes(BODY_BYTES_MAX))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xff",
        b'syntax = "proto3"; message Order { int64 id = 1; }',
        order_set(imported="absent.proto"),
        order_set(imported="shop.proto"),
    ],
)
def test_an_unusable_descriptor_set_is_refused(content: bytes) -> None:
    with pytest.raises(SchemaError):
        ProtobufSchema(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"type": "record"}',
        b'"no.such.Type"',
        b"[" * 100_000,
        b'{"a":' * 100 + b"1" + b"}" * 100,
        b'{"type": "array"}',
        b"7",
    ],
)
def test_an_unusable_avro_schema_is_refused(content: bytes) -> None:
    with pytest.raises(SchemaError):
        AvroSchema(content)


def test_random_bodies_and_descriptor_sets_never_raise_anything_else() -> None:
    source = random.Random(7)
    rules = [rule(framing=each) for each in Framing]
    rules += [rule(kind=Format.AVRO, type_name="", framing=each) for each in Framing]
    for number in range(300):
        body = bytearray(order_bytes(id=7, customer="x", tags={"a": True}))
        for _flip in range(number % 5):
            body[source.randrange(len(body))] = source.randrange(256)
        for each in rules:
            Decoder((each,)).decode(message_of(bytes(body), "orders"))
        damaged = bytearray(order_set())
        damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            ProtobufSchema(bytes(damaged))
        except SchemaError:
            continue


def test_the_most_specific_rule_decides_also_for_retry_and_dead_letter_topics() -> None:
    special = rule("orders-eu*", type_name="shop.v1.Refund")
    rules = Decoder(tuple(sorted((rule("*"), special, rule()), key=lambda each: each.rank)))

    def chosen(topic: str, **properties: str) -> str:
        found = rules.rule_of(message_of(b"", topic, properties))
        assert found is not None
        return found.pattern

    assert chosen("orders-eu-1") == "orders-eu*"
    assert chosen("orders-us") == "orders*"
    assert chosen("payments") == "*"
    only = Decoder((special,))
    dead = message_of(b"", "%DLQ%billing", {"DLQ_ORIGIN_TOPIC": "orders-eu-2"})
    assert only.rule_of(dead) is special
    assert only.rule_of(message_of(b"", "%RETRY%billing", {"RETRY_TOPIC": "orders-eu"})) is special
    assert only.decode(message_of(b"{}", "payments")) is None


@pytest.mark.parametrize(
    ("test", "text", "matches"),
    [
        (BodyTest.JSON, "$.customer = Zoë", True),
        (BodyTest.JSON, "$.id > 7", False),
        (BodyTest.TEXT, '"state": "paid"', True),
        (BodyTest.REGEX, '"id": [0-9]+', True),
    ],
)
def test_a_search_reads_the_decoded_body(test: BodyTest, text: str, matches: bool) -> None:
    message = message_of(order_bytes(id=7, customer="Zoë", state=1), "orders")
    wanted = MessageFilter(body=text, body_test=test)
    assert wanted.decoding(Decoder((rule(),))).compiled()(message) is matches
    assert not wanted.compiled()(message)
    other: MessageExt = message_of(b'{"id": 8, "customer": "Zoe"}', "payments")
    assert wanted.decoding(Decoder((rule(),))).compiled()(other) is (
        text == "$.id > 7" or "[" in text
    )


@pytest.mark.parametrize("digits", [{"precision": 10**9}, {"precision": 10**9, "scale": 10**8}])
@pytest.mark.parametrize("kind", ["bytes", "fixed"])
def test_decimals_with_a_billion_digits_are_refused(digits: dict[str, int], kind: str) -> None:
    field = {"type": kind, "name": "d", "size": 4, "logicalType": "decimal", **digits}
    with pytest.raises(SchemaError, match="digits"):
        AvroSchema(json.dumps({"type": "array", "items": field}).encode())
