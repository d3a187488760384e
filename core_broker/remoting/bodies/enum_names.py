"""Enumerations in bodies: names on the wire, but ordinals from C++ clients.

A struct with EnumName fields calls `name_ordinals` in __post_init__ to convert ordinals to names.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    EnumName = str
else:
    EnumName = str | int


class ConsumeType(StrEnum):
    """Kind of consumer: pull (actively), push (passively) or pop."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Message model of a group: members divide the messages, or every member gets all messages."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(StrEnum):
    """Start position of a group in a queue without an offset. MIN and MAX values are obsolete."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def name_ordinals(struct: msgspec.Struct, **fields: type[StrEnum]) -> None:
    """Replace ordinals in the named fields by names; raises ValueError for a bad ordinal."""
    for attribute, kind in fields.items():
        value: object = getattr(struct, attribute)
        if isinstance(value, int):
            names = tuple(kind)
            if not 0 <= value < len(names):
                raise ValueError(f"{kind.__name__} has no member number {value}")
            setattr(struct, attribute, names[value].value)
