"""Filters messages by properties while a queue is read.

The filter reads only the part of a record behind the body, which may be large. Compatible with
RocketMQ's MessageFilter.isMatchedByCommitLog.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import error

from core_broker.message.layout import INT, SHORT
from core_broker.message.properties import decode_properties
from core_broker.message.record_layout import (
    BODY_LENGTH_AT,
    RECORD_MAGIC_V1,
    RECORD_START,
    SYS_FLAG_AT,
    V6_EXTRA_BYTES,
    V6_HOSTS,
)
from core_broker.store.commit_log import CommitLog

#: Maximum size of records that are read as a whole, bytes; larger records are read in two parts.
WHOLE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """Selects messages by their properties."""

    matches: Callable[[Mapping[str, str]], bool | None]
    #: Maximum number of messages per read, so that a filter cannot block the event loop.
    messages_max: int

    def wants(self, log: CommitLog, offset: int, size: int) -> bool:
        """Return whether the message at a physical offset matches.

        An unreadable message matches, so that the following read reports the damage. Raises
        ColdRead.
        """
        properties = _properties(log, offset, size)
        return properties is None or self.matches(properties) is True


def _properties(log: CommitLog, offset: int, size: int) -> dict[str, str] | None:
    """Read the properties of a record, or None when its lengths do not add up."""
    data = log.read(offset, min(size, WHOLE_BYTES_MAX))
    try:
        (_, magic) = RECORD_START.unpack_from(data)
        at = _behind_body(data)
        if at >= size:
            return None
        if len(data) < size:
            data, at = log.read(offset + at, size - at), 0
        topic_bytes = data[at] + 1 if magic == RECORD_MAGIC_V1 else _long_topic_bytes(data, at)
    except (IndexError, error):
        return None
    return decode_properties(data[at + topic_bytes + SHORT.size :])


def _behind_body(data: bytes) -> int:
    flags = data[SYS_FLAG_AT + 3]
    at = BODY_LENGTH_AT + V6_EXTRA_BYTES * (flags & V6_HOSTS).bit_count()
    (body_bytes,) = INT.unpack_from(data, at)
    return at + INT.size + int(body_bytes)


def _long_topic_bytes(data: bytes, at: int) -> int:
    (topic_bytes,) = SHORT.unpack_from(data, at)
    return SHORT.size + int(topic_bytes)
