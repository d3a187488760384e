"""Ext fields: the flat string-to-string object with the parameters of a command.

On the wire each value is a JSON string, also for numbers and booleans. C++ and Node clients send
bare numbers and booleans, which are read as their text. Java parses only the text "true", in any
letter case, as true: the "1" of C++ clients is false for RocketMQ. Compatible with RocketMQ's
CommandCustomHeader and RemotingCommand.decodeCommandCustomHeader.

Numbers are read as Java's Integer.parseInt and Long.parseLong read them: a sign, leading zeros and
other decimal digits of Unicode are valid; blanks, underscores, fractions and exponents are not.
msgspec decodes the usual form of numbers; other forms are for `decode_fields`.

A typed header is a `Header` struct whose attributes are the fields in snake_case. Unknown fields
are ignored; a missing or invalid required field raises ProtocolError.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec

from core_broker.errors import ProtocolError

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

if TYPE_CHECKING:
    Boolean = bool
else:
    # msgspec reads "1" as true, so the decoder keeps the raw value, and _convert_booleans() applies
    # Java's rule.
    Boolean = bool | int | float | str

#: A number that Java parses. Java's digits are UTF-16 units, so digits above U+FFFF are invalid.
_JAVA_NUMBER = re.compile(r"[+-]?[^\D\U00010000-\U0010ffff]+")
#: Finds every value that may be a number with fraction or exponent, which msgspec reads as whole.
#: The pattern begins with the rarer character: headers have many digits.
_may_have_fraction = re.compile(rb"[.eE](?<=[0-9].)[0-9.eE+-]*[\",}\s]").search

#: Exceptions of msgspec for malformed or unexpected JSON.
DECODE_FAULTS = (msgspec.MsgspecError, RecursionError, ValueError)


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all typed headers; None means that the field is absent."""


H = TypeVar("H", bound=Header)


class _Plan(NamedTuple):
    decoder: msgspec.json.Decoder[Any]
    names: tuple[tuple[str, str], ...]
    booleans: tuple[str, ...]
    #: Names of the numeric fields on the wire.
    numbers: tuple[str, ...]


@cache
def _plan(kind: type[Header]) -> _Plan:
    fields = msgspec.structs.fields(kind)
    return _Plan(
        msgspec.json.Decoder(kind, strict=False),
        tuple((field.name, field.encode_name) for field in fields),
        tuple(field.name for field in fields if _is_boolean(field.type)),
        tuple(field.encode_name for field in fields if _is_number(field.type)),
    )


def _is_boolean(annotation: Any) -> bool:
    members = getattr(annotation, "__args__", ())
    return annotation is bool or bool in members


def _is_number(annotation: Any) -> bool:
    return annotation in (Int, Long) or not {Int, Long}.isdisjoint(get_args(annotation))


def decode_raw(kind: type[H], raw: msgspec.Raw) -> H | None:
    """Decode a typed header from its JSON text; None when only `decode_fields` can."""
    if _may_have_fraction(raw):
        return None
    plan = _plan(kind)
    try:
        header = plan.decoder.decode(raw)
    except DECODE_FAULTS:
        return None
    if plan.booleans:
        _convert_booleans(header, plan.booleans)
    return header  # type: ignore[no-any-return]


def decode_fields(kind: type[H], fields: dict[str, str]) -> H:
    """Decode a typed header from its fields as text; raises ProtocolError."""
    plan = _plan(kind)
    values: dict[str, str | int] = {**fields}
    for name in plan.numbers:
        if name in fields:
            values[name] = _parse_number(kind, name, fields[name])
    try:
        header = msgspec.convert(values, kind, strict=False)
    except DECODE_FAULTS as fault:
        raise ProtocolError(f"{kind.__name__}: {fault}") from None
    _convert_booleans(header, plan.booleans)
    return header


def _parse_number(kind: type[Header], name: str, text: str) -> int:
    """Parse a number as Java does; raises ProtocolError. msgspec checks the range."""
    digits = text.lstrip("0") or "0"  # int() refuses thousands of digits, also when they are zeros
    try:
        if _JAVA_NUMBER.fullmatch(text):
            return int(digits)
    except ValueError:
        pass
    raise ProtocolError(
        f"{kind.__name__}: expected a whole number, not {text[:40]!r} - at `$.{name}`"
    )


def encode_fields(header: Header) -> dict[str, str]:
    """The fields of a typed header as text, without fields that are None."""
    fields: dict[str, str] = {}
    for attribute, name in _plan(header.__class__).names:
        value = getattr(header, attribute)
        if value.__class__ is str:
            fields[name] = value
        elif value is not None:
            fields[name] = text_of(value)
    return fields


def text_of(value: str | int | float | bool) -> str:
    """The text of a value in an ext field, as in Java."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)


def read_fields(raw: msgspec.Raw) -> dict[str, str]:
    """Decode all ext fields as text; raises ProtocolError unless the input is a JSON object."""
    try:
        return _decode_strings(raw)
    except DECODE_FAULTS:
        pass
    try:
        members = _decode_members(raw)
        return {} if members is None else _member_texts(members)
    except DECODE_FAULTS as fault:
        raise ProtocolError(f"extFields is not an object of strings: {fault}") from None


_decode_strings = msgspec.json.Decoder(dict[str, str]).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_string = msgspec.json.Decoder(str).decode


def _member_texts(members: dict[str, msgspec.Raw]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, raw in members.items():
        text = bytes(raw)
        if text.startswith(b'"'):
            texts[name] = _decode_string(text)
        elif text != b"null":
            texts[name] = text.decode()
    return texts


def _convert_booleans(header: Header, booleans: tuple[str, ...]) -> None:
    """Convert the raw values of boolean fields by Java's rule."""
    for name in booleans:
        value = getattr(header, name)
        if value.__class__ is not bool and value is not None:
            setattr(header, name, value.__class__ is str and value.lower() == "true")
