"""The rules of a cluster: bodies of the topics of a pattern are decoded by a schema.

The most specific rule decides: the rule whose pattern has the most characters beside `*`. Copies in
retry and dead-letter topics are decoded by the rule of the original topic, which a property names.

A body of which the reader may not see some fields is not decoded: masks read the bytes, and do not
find every value that a schema would show.
"""

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.schemas.avro import AvroSchema
from console.gateway.messages.schemas.bounds import (
    BODY_BYTES_MAX,
    TEXT_CHARS_MAX,
    Budget,
    Misfit,
    SchemaError,
)
from console.gateway.messages.schemas.framing import (
    Framing,
    confluent,
    delimited,
    message_indexes,
)
from console.gateway.messages.schemas.protobuf import ProtobufSchema
from console.gateway.patterns import fits
from core_broker.errors import ProtocolError
from core_broker.message import properties as names
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt

_ORIGINS: Final = (names.PROPERTY_RETRY_TOPIC, names.PROPERTY_DLQ_ORIGIN_TOPIC)


class Format(StrEnum):
    PROTOBUF = "protobuf"
    AVRO = "avro"

    @property
    def label(self) -> str:
        return self.value.capitalize()


class Schema(Protocol):
    types: tuple[str, ...]

    def decode(self, type_name: str, data: bytes, budget: Budget) -> Any: ...


def read_schema(kind: str, content: bytes) -> Schema:
    """Compile a stored schema. Raises SchemaError."""
    return ProtobufSchema(content) if kind == Format.PROTOBUF else AvroSchema(content)


@dataclass(frozen=True, slots=True)
class BodyRule:
    """A rule; hashable, so that a filter with rules is an argument of questions."""

    pattern: str
    format: Format
    type_name: str
    framing: Framing
    #: SHA-256 of the schema's content.
    digest: str
    schema: Schema | None = field(compare=False, repr=False)

    @property
    def rank(self) -> tuple[int, str]:
        return -len(self.pattern.replace("*", "")), self.pattern


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body by its rule: JSON text, or the reason why the body does not fit (`misfit`)."""

    text: str
    label: str
    misfit: str = ""


@dataclass(frozen=True, slots=True)
class Decoder:
    """The rules of a cluster, the most specific first, and the mask of the reader; hashable."""

    rules: tuple[BodyRule, ...] = ()
    mask: Mask = NO_MASK

    def seen_through(self, mask: Mask) -> "Decoder":
        return replace(self, mask=mask)

    def decode(self, message: MessageExt) -> Decoded | None:
        """Return the body as JSON text; None without a rule for the topic, or when masked."""
        rule = self.rule_of(message) if self.rules else None
        if rule is None or self.mask.hides_body(message):
            return None
        return decode_by(rule, message)

    def rule_of(self, message: MessageExt) -> BodyRule | None:
        topics = (message.topic, *(message.properties.get(each, "") for each in _ORIGINS))
        for topic in filter(None, topics):
            for rule in self.rules:
                if fits(rule.pattern, topic):
                    return rule
        return None


NO_DECODER: Final = Decoder()


def decode_by(rule: BodyRule, message: MessageExt) -> Decoded:
    label = " ".join(filter(None, (rule.format.label, rule.type_name)))
    try:
        value, label = _value(rule, _body(message), label)
    except (Misfit, SchemaError, RecursionError) as fault:
        return Decoded("", label, str(fault))
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) > TEXT_CHARS_MAX:
        return Decoded("", label, f"more than {TEXT_CHARS_MAX} characters as JSON")
    return Decoded(text, label)


def _value(rule: BodyRule, body: bytes, label: str) -> tuple[Any, str]:
    schema, budget = rule.schema, Budget()
    if schema is None:
        raise SchemaError("the schema of the rule is missing")
    match rule.framing:
        case Framing.RAW:
            return schema.decode(rule.type_name, body, budget), label
        case Framing.DELIMITED:
            values = [schema.decode(rule.type_name, each, budget) for each in delimited(body)]
            return (values[0] if len(values) == 1 else values), label
        case Framing.CONFLUENT:
            schema_id, rest = confluent(body)
            type_name = rule.type_name
            if isinstance(schema, ProtobufSchema):
                indexes, rest = message_indexes(rest)
                type_name = schema.indexed_type(type_name, indexes)
                label = f"{rule.format.label} {type_name}"
            value = schema.decode(type_name, rest, budget)
            return value, f"{label} · schema ID {schema_id}"


def _body(message: MessageExt) -> bytes:
    body = message.body
    if message.sys_flag & sysflag.COMPRESSED:
        try:
            body = decompress(body, message.sys_flag, BODY_BYTES_MAX)
        except ProtocolError as fault:
            raise Misfit(str(fault)) from fault
    if len(body) > BODY_BYTES_MAX:
        raise Misfit(f"larger than {BODY_BYTES_MAX // 1024} KiB")
    return body
