"""Enumerations of bodies. On the wire they are names; C++ clients write their ordinals instead.

A field of the type EnumName holds a name once its struct has called `settle` in __post_init__.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    EnumName = str
else:
    EnumName = str | int


class ConsumeType(StrEnum):
    """How a consumer receives: it pulls, is pushed to, or pops."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Whether the members of a group share the messages or each receive all."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(StrEnum):
    """Where a group starts in a queue that it has no offset for; the middle ones are obsolete."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def settle(struct: msgspec.Struct, **fields: type[StrEnum]) -> None:
    """Replace the ordinals in the named fields by names; raises ValueError for one out of range."""
    for attribute, kind in fields.items():
        value: object = getattr(struct, attribute)
        if isinstance(value, int):
            names = tuple(kind)
            if not 0 <= value < len(names):
                raise ValueError(f"{kind.__name__} has no member number {value}")
            setattr(struct, attribute, names[value].value)
