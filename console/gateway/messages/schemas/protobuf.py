"""Protobuf: a FileDescriptorSet (`protoc --include_imports --descriptor_set_out=FILE`), and
messages as JSON values.

The library `protobuf` parses; its parser limits nesting to 100 levels and checks UTF-8. Protobuf
has no signature: any bytes may parse as unknown fields. A message therefore does not fit when a
field of the type has another wire type, or when all fields are unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from console.gateway.messages.schemas.bounds import (
    TYPES_MAX,
    Budget,
    Misfit,
    SchemaError,
    base64_text,
    number,
)

FILES_MAX: Final = 500
#: Wire type of integers; closed enums keep unknown values as unknown fields.
VARINT: Final = 0
#: Files that each Protobuf compiler contains, so that descriptor sets may lack them.
_WELL_KNOWN: Final = (
    *("any", "api", "descriptor", "duration", "empty", "field_mask"),
    *("source_context", "struct", "timestamp", "type", "wrappers"),
)
#: Types with a text form of their own in JSON.
_TIMES: Final = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration"})


class ProtobufSchema:
    """A descriptor set. Raises SchemaError for unusable contents."""

    def __init__(self, content: bytes) -> None:
        files = _files(content)
        self._pool = descriptor_pool.DescriptorPool()
        waiting = {each.name: each for each in files}
        names: list[str] = []
        for each in files:
            self._add(each.name, waiting, ())
            names += _names(each.message_type, each.package)
            if len(names) > TYPES_MAX:
                raise SchemaError(f"more than {TYPES_MAX} message types")
        #: Full names of the message types.
        self.types = tuple(sorted(names))
        if not names:
            raise SchemaError("the descriptor set has no message type")

    def _add(self, name: str, waiting: dict[str, Any], within: tuple[str, ...]) -> None:
        """Add a file after the files that it imports."""
        file = waiting.pop(name, None)
        if file is None:
            return
        for imported in file.dependency:
            if imported in within or imported == name:
                raise SchemaError(f"{name} and {imported} import each other")
            if imported in waiting:
                self._add(imported, waiting, (*within, name))
            else:
                self._add_well_known(imported)
        try:
            self._pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, ValueError) as fault:
            raise SchemaError(f"{name}: {fault} (protoc needs --include_imports)") from fault

    def _add_well_known(self, name: str) -> None:
        short = name.removeprefix("google/protobuf/").removesuffix(".proto")
        try:
            self._pool.FindFileByName(name)
        except KeyError:
            if short in _WELL_KNOWN:
                __import__(f"google.protobuf.{short}_pb2")
                known = descriptor_pool.Default().FindFileByName(name)
                for imported in known.dependencies:
                    self._add_well_known(imported.name)
                self._pool.AddSerializedFile(known.serialized_pb)

    def decode(self, type_name: str, data: bytes, budget: Budget) -> Any:
        """Return a message as JSON value. Raises Misfit."""
        descriptor = self._pool.FindMessageTypeByName(type_name)
        message = message_factory.GetMessageClass(descriptor)()
        try:
            message.ParseFromString(data)
        except DecodeError as fault:
            raise Misfit(f"not a {type_name}: {fault}") from fault
        if not message.IsInitialized():
            raise Misfit(f"not a {type_name}: required fields are missing")
        if data and not message.ListFields():
            raise Misfit(f"no field of {type_name} is in the body")
        return _values(message, budget, 0)

    def indexed_type(self, type_name: str, indexes: tuple[int, ...]) -> str:
        """Return the type of Confluent's indexes, in the file of the rule's type. Raises Misfit."""
        siblings = list(
            self._pool.FindMessageTypeByName(type_name).file.message_types_by_name.values()
        )
        descriptor = None
        for index in indexes:
            if not 0 <= index < len(siblings):
                raise Misfit(f"the file of {type_name} has no message type {list(indexes)}")
            descriptor = siblings[index]
            siblings = list(descriptor.nested_types)
        assert descriptor is not None  # a header has at least one index
        return str(descriptor.full_name)


def _files(content: bytes) -> list[Any]:
    found = descriptor_pb2.FileDescriptorSet()
    try:
        found.ParseFromString(content)
    except DecodeError as fault:
        raise SchemaError(f"not a FileDescriptorSet: {fault}") from fault
    if not found.file or not all(each.name for each in found.file):
        raise SchemaError("not a FileDescriptorSet (protoc --descriptor_set_out)")
    if len(found.file) > FILES_MAX:
        raise SchemaError(f"more than {FILES_MAX} files")
    return list(found.file)


def _names(messages: Any, within: str) -> Iterator[str]:
    for each in messages:
        if each.options.map_entry:
            continue
        name = f"{within}.{each.name}" if within else each.name
        yield name
        yield from _names(each.nested_type, name)


def _values(message: Any, budget: Budget, depth: int) -> Any:
    """Return the set fields by name. Raises Misfit."""
    budget.spend(depth)
    descriptor = message.DESCRIPTOR
    for field in UnknownFieldSet(message):
        known = descriptor.fields_by_number.get(field.field_number)
        if known is not None and not (known.enum_type and field.wire_type == VARINT):
            raise Misfit(f"field {known.name} of {descriptor.full_name} has another wire type")
    if descriptor.full_name in _TIMES:
        try:
            return message.ToJsonString()
        except ValueError:
            pass  # beyond the range of the text form: show the fields
    found = {}
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        found[name] = _field(field, value, budget, depth + 1)
    return found


def _field(field: Any, value: Any, budget: Budget, depth: int) -> Any:
    if isinstance(value, Mapping):  # a map; its values by their own field
        budget.spend(depth)
        inner = field.message_type.fields_by_name["value"]
        return {_key(key): _single(inner, each, budget, depth + 1) for key, each in value.items()}
    if field.is_repeated:
        budget.spend(depth)
        return [_single(field, each, budget, depth + 1) for each in value]
    return _single(field, value, budget, depth)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _single(field: Any, value: Any, budget: Budget, depth: int) -> Any:
    if field.message_type is not None:
        return _values(value, budget, depth)
    budget.spend(depth)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else value
    if isinstance(value, bytes):
        return base64_text(value)
    return number(value) if isinstance(value, float) else value
