"""Layouts: the fixed-size, big-endian parts of RocketMQ's formats, as tables of named fields.

A layout is written once, as (name, format) pairs in the order of the bytes. Structs, offsets and
numpy dtypes derive from the table, so all modules use the same format. Layouts and
their Structs are made when a module is imported; hot loops keep the bound `unpack_from`.
"""

from struct import Struct, calcsize
from typing import NamedTuple

#: Length fields of 2 and 4 bytes, and 8-byte numbers.
SHORT = Struct(">H")
INT = Struct(">I")
LONG = Struct(">q")

_NUMPY_FORMATS = {"H": ">u2", "I": ">u4", "i": ">i4", "q": ">i8"}


class Field(NamedTuple):
    """A field: name, format code of `struct`, and offset, bytes."""

    name: str
    format: str
    offset: int


class Layout:
    """Consecutive named fields of fixed size, without padding, big-endian."""

    __slots__ = ("_fields", "size", "struct")

    def __init__(self, *fields: tuple[str, str]) -> None:
        self._fields: dict[str, Field] = {}
        #: Size of all fields, bytes.
        self.size = 0
        for name, code in fields:
            self._fields[name] = Field(name, code, self.size)
            self.size += calcsize(">" + code)
        #: Packs and unpacks all fields, in the order of the table.
        self.struct = Struct(">" + "".join(code for _, code in fields))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in the order of the bytes."""
        return tuple(self._fields.values())

    def at(self, name: str) -> int:
        """Return the offset of a field, bytes."""
        return self._fields[name].offset

    def index(self, name: str) -> int:
        """Return the position of a field in the tuple that `struct` unpacks."""
        return list(self._fields).index(name)

    def select(self, *names: str) -> Struct:
        """Return a Struct of the named fields, given in the order of the bytes.

        The Struct starts at the first byte of the layout, skips the fields between the named ones,
        and ends with the last named one.
        """
        parts, end = [], 0
        for name in names:
            _, code, offset = self._fields[name]
            if offset < end:
                raise ValueError(f"field {name} is selected out of order")
            parts.append(f"{offset - end}x{code}" if offset > end else code)
            end = offset + calcsize(">" + code)
        return Struct(">" + "".join(parts))

    def numpy_fields(self) -> list[tuple[str, str]]:
        """Return the fields for `numpy.dtype`; fields of bytes become void fields."""
        return [
            (field.name, _NUMPY_FORMATS.get(field.format) or "V" + field.format.removesuffix("s"))
            for field in self.fields
        ]
