"""What the store answers: outcomes of puts, reads and queries.

The names of the states are those of RocketMQ's PutMessageStatus and GetMessageStatus.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import msgspec


class PutStatus(Enum):
    """How a put ended. Only PUT_OK stored anything."""

    PUT_OK = "PUT_OK"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class PutResult(msgspec.Struct, frozen=True, gc=False):
    """Where a message went. It may be acknowledged after `write_staged` returned."""

    status: PutStatus
    offset_physical: int = 0
    offset_logical: int = 0
    size: int = 0
    store_timestamp: int = 0

    @property
    def offset_end(self) -> int:
        """First byte behind the record: what must be flushed before a SYNC_FLUSH answer."""
        return self.offset_physical + self.size


class GetStatus(Enum):
    """How a read ended; all but FOUND come without messages."""

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
    """The records read from one queue, in order, each exactly as it lies in the log."""

    status: GetStatus
    records: Sequence[bytes | memoryview]
    next_offset: int
    min_offset: int
    max_offset: int
    #: The reader is so far behind that its data has probably left the memory.
    is_slow: bool = False
    #: Bytes from the last message looked at to the end of the log.
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
    """The records found under a key, oldest first, and how far the index reaches."""

    records: Sequence[bytes]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int
