"""Results of the store: of puts, reads and queries.

The names of the states are those of RocketMQ's PutMessageStatus and GetMessageStatus.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import msgspec


class PutStatus(Enum):
    """The outcome of a put. Only PUT_OK stores the message."""

    PUT_OK = "PUT_OK"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class PutResult(msgspec.Struct, frozen=True, gc=False):
    """The position of a staged message, to be acknowledged after `write_staged`."""

    status: PutStatus
    offset_physical: int = 0
    offset_logical: int = 0
    size: int = 0
    store_timestamp: int = 0

    @property
    def offset_end(self) -> int:
        """First byte behind the record; a SYNC_FLUSH answer waits for a flush up to here."""
        return self.offset_physical + self.size


class GetStatus(Enum):
    """The outcome of a read. Only FOUND has messages."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


class GetResult(msgspec.Struct, frozen=True):
    """The records read from one queue, in order, byte-identical to the log."""

    status: GetStatus
    records: Sequence[bytes | memoryview]
    next_offset: int
    min_offset: int
    max_offset: int
    #: The reader is so far behind that its data is probably not in memory.
    is_slow: bool = False
    #: Distance from the last scanned message to the end of the log, bytes.
    behind: int = 0

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.records)


class QueueUnit(NamedTuple):
    """One entry of a consume queue."""

    offset_physical: int
    size: int
    tags_code: int


class QueryResult(msgspec.Struct, frozen=True):
    """The records found by key, oldest first, and the end of the index."""

    records: Sequence[bytes]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int
