"""Avro: a schema (.avsc), and binary data as JSON values.

The library `fastavro` checks the schema, resolves names and converts logical types. The data is
read here: the library's compiled reader follows recursive types until the stack of the process
overflows, and arrays of nulls until the memory ends.

Layout of data (Avro 1.12, "Binary Encoding"): int, long and the lengths of bytes and strings are
zigzag varints; a union is the index of a branch and a value; arrays and maps are blocks with a
count of items, 0 at the end, and a negative count followed by the size of the block in bytes.
"""

import datetime
import decimal
import json
import struct
from typing import Any, Final

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

from console.gateway.messages.schemas.bounds import (
    TYPES_MAX,
    Budget,
    Misfit,
    SchemaError,
    base64_text,
    number,
)
from console.gateway.messages.schemas.framing import varint, zigzag

SCHEMA_DEPTH_MAX: Final = 64
#: Maximum precision and scale of a decimal, digits: text of a number has all of them.
DECIMAL_DIGITS_MAX: Final = 400
#: Maximum size of the bytes of a decimal.
DECIMAL_BYTES_MAX: Final = 128
_FAULTS: Final = (ValueError, ArithmeticError, LookupError, TypeError, struct.error)


class AvroSchema:
    """A schema. Raises SchemaError for unusable contents."""

    def __init__(self, content: bytes) -> None:
        document = _document(content)
        self._named: dict[str, Any] = {}
        try:
            self._whole = fastavro.parse_schema(document, self._named)
        except (SchemaParseException, UnknownType) as fault:
            raise SchemaError(f"not an Avro schema: {fault}") from fault
        except (*_FAULTS, AttributeError) as fault:
            raise SchemaError(f"not an Avro schema: {type(fault).__name__} {fault}") from fault
        if len(self._named) > TYPES_MAX:
            raise SchemaError(f"more than {TYPES_MAX} types")
        #: Full names of the records, enums and fixed types.
        self.types = tuple(sorted(self._named))

    def decode(self, type_name: str, data: bytes, budget: Budget) -> Any:
        """Return data as JSON value; without a type name, by the whole schema. Raises Misfit."""
        reader = _Reader(data, self._named, budget)
        value = reader.value(self._named[type_name] if type_name else self._whole, 0)
        if reader.at != len(data):
            raise Misfit(f"{len(data) - reader.at} bytes follow the value")
        return value


def _document(content: bytes) -> Any:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise SchemaError(f"not JSON: {fault}") from fault
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > SCHEMA_DEPTH_MAX:
            raise SchemaError(f"nested deeper than {SCHEMA_DEPTH_MAX} levels")
        nodes = [each for each in level if isinstance(each, dict | list)]
        if any(map(_is_long_decimal, nodes)):
            raise SchemaError(f"a decimal of more than {DECIMAL_DIGITS_MAX} digits")
        level = [
            inner for each in nodes for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return document


def _is_long_decimal(schema: Any) -> bool:
    """True for the logical type with a precision or scale beyond the bound."""
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return False
    digits = [schema.get(name, 0) for name in ("precision", "scale")]
    return any(isinstance(each, int | float) and abs(each) > DECIMAL_DIGITS_MAX for each in digits)


class _Reader:
    """Reads one value by a parsed schema."""

    def __init__(self, data: bytes, named: dict[str, Any], budget: Budget) -> None:
        self.at = 0
        self._data = data
        self._named = named
        self._budget = budget

    def value(self, schema: Any, depth: int) -> Any:
        self._budget.spend(depth)
        if isinstance(schema, list):
            index = self._long()
            if not 0 <= index < len(schema):
                raise Misfit(f"a union of {len(schema)} branches has no branch {index}")
            return self.value(schema[index], depth + 1)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if not isinstance(kind, str):
            return self.value(kind, depth + 1)
        if kind in self._named:
            return self.value(self._named[kind], depth + 1)
        found = self._plain(kind, schema, depth)
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        read = LOGICAL_READERS.get(f"{kind}-{logical}")
        return _json(found if read is None else _converted(read, found, schema, logical))

    def _plain(self, kind: str, schema: Any, depth: int) -> Any:
        match kind:
            case "fixed":
                return self._bytes(schema["size"])
            case "enum":
                index = self._long()
                if not 0 <= index < len(schema["symbols"]):
                    raise Misfit(f"enum {schema['name']} has no symbol {index}")
                return schema["symbols"][index]
            case "record" | "error":
                return {
                    field["name"]: self.value(field["type"], depth + 1)
                    for field in schema["fields"]
                }
            case "array":
                return [self.value(schema["items"], depth + 1) for _item in self._items()]
            case "map":
                return {
                    self._string(): self.value(schema["values"], depth + 1)
                    for _item in self._items()
                }
        return self._primitive(kind)

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                byte = self._bytes(1)[0]
                if byte > 1:
                    raise Misfit(f"a boolean is 0 or 1, not {byte}")
                return byte == 1
            case "int" | "long":
                return self._long()
            case "float":
                return struct.unpack("<f", self._bytes(4))[0]
            case "double":
                return struct.unpack("<d", self._bytes(8))[0]
            case "bytes":
                return self._bytes(self._long())
            case "string":
                return self._string()
        raise Misfit(f"unknown type {kind[:80]}")

    def _items(self) -> Any:
        """One step per item of an array or map; each step must spend a value."""
        while count := self._long():
            if count < 0:
                self._long()  # size of the block, bytes
            yield from range(abs(count))

    def _long(self) -> int:
        raw, self.at = varint(self._data, self.at)
        return zigzag(raw)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise Misfit(f"{size} bytes are announced, {len(self._data) - self.at} remain")
        self.at += size
        return self._data[self.at - size : self.at]

    def _string(self) -> str:
        try:
            return self._bytes(self._long()).decode()
        except UnicodeDecodeError as fault:
            raise Misfit(f"a string is not UTF-8: {fault}") from fault


def _converted(read: Any, value: Any, schema: Any, logical: Any) -> Any:
    """Apply the reader of a logical type."""
    if _is_long_decimal(schema):
        raise Misfit(f"a decimal of more than {DECIMAL_DIGITS_MAX} digits")
    if isinstance(value, bytes) and len(value) > DECIMAL_BYTES_MAX:
        return value
    try:
        return read(value, schema)
    except _FAULTS as fault:
        raise Misfit(f"not a {logical}: {fault}") from fault


def _json(value: Any) -> Any:
    """Return a value of JSON; values of records, arrays and maps have been converted before."""
    match value:
        case bytes():
            return base64_text(value)
        case float():
            return number(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case None | bool() | int() | str() | dict() | list():
            return value
    return str(value)  # UUID
