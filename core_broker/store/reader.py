"""Reading messages: from a queue for consumers, by time, by key.

One read returns at most 32 messages or 256 KiB from memory and 8 messages or 64 KiB from disk by
default, and at least one message whatever its size. A message counts as in memory when it lies
within `accessMessageInMemoryMaxRatio` of the machine's memory from the end of the log. Compatible
with RocketMQ's DefaultMessageStore.getMessage, getOffsetInQueueByTime and queryMessage.
"""

import logging
import os
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from core_broker.config import BrokerConfig
from core_broker.message.record import (
    PHYSICAL_OFFSET_AT,
    RECORD_BYTES_MIN,
    RECORD_HEAD,
    RECORD_MAGIC_V1,
    RECORD_MAGIC_V2,
    STORE_TIMESTAMP_AT,
    SYS_FLAG_AT,
)
from core_broker.message.sysflag import BORN_HOST_V6
from core_broker.store.commit_log import CommitLog
from core_broker.store.consume_queue import BLANK_SIZE, UNIT_BYTES, ConsumeQueue
from core_broker.store.key_hash import KeyHasher
from core_broker.store.layout import StoreParts
from core_broker.store.results import GetResult, GetStatus, QueryResult, QueueUnit

#: One read looks at so many bytes of a consume queue, so that a filter cannot hold up the loop.
SCANNED_BYTES_MAX = 16_000
#: Neighbouring records with no more than this between them are read by one call.
GAP_BYTES_MAX = 16 * 1024
#: But never more than this at once, beyond a single record.
SPAN_BYTES_MAX = 1024 * 1024

_RECORD_MAGICS = frozenset({RECORD_MAGIC_V1, RECORD_MAGIC_V2})
_LONG = Struct(">q")
_V6_EXTRA = 12

#: At most so many messages and so many bytes.
Limit = tuple[int, int]
#: Whether a consumer wants a message, by its tags code.
Accept = Callable[[int], bool]

log = logging.getLogger(__name__)


class _Chosen(NamedTuple):
    """The units of one answer, how many were looked at for it, and where the last of those lies."""

    status: GetStatus
    units: list[QueueUnit]
    seen: int
    last_physical: int


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class LogReader:
    """Reads single records, and runs of them, from the log."""

    def __init__(self, commit_log: CommitLog) -> None:
        self._log = commit_log

    def record(self, offset: int, size: int | None = None) -> bytes | None:
        """Return the record that begins at an offset, or None when none does."""
        if offset < self._log.min_offset:
            return None
        if size is None:
            head = self._log.read(offset, RECORD_BYTES_MIN)
            if not is_record(head, offset):
                return None
            (size, _) = RECORD_HEAD.unpack_from(head)
        data = self._log.read(offset, size)
        return data if len(data) == size and is_record(data, offset, size) else None

    def store_timestamp(self, offset: int) -> int:
        """Return when the record at an offset was stored, in ms, or -1 when there is none."""
        head = self._log.read(offset, RECORD_BYTES_MIN)
        if offset < self._log.min_offset or not is_record(head, offset):
            return -1
        return store_timestamp_in(head)

    def records(self, units: list[QueueUnit]) -> list[bytes | memoryview]:
        """Return the records of units in order, in few reads; missing ones are left out."""
        found: list[bytes | memoryview] = []
        first = 0
        while first < len(units):
            start, size, _ = units[first]
            end = start + size
            limit = min(self._log.segment_end(start), start + SPAN_BYTES_MAX)
            stop = first + 1
            while stop < len(units):
                offset, size, _ = units[stop]
                if not 0 <= offset - end <= GAP_BYTES_MAX or offset + size > limit:
                    break
                end = offset + size
                stop += 1
            self._read_span(units[first:stop], start, end, found)
            first = stop
        return found

    def _read_span(
        self, units: list[QueueUnit], start: int, end: int, found: list[bytes | memoryview]
    ) -> None:
        data = self._log.read(start, end - start)
        view = memoryview(data)
        for offset, size, _ in units:
            at = offset - start
            if is_record(data, offset, size, at):
                found.append(data if size == len(data) else view[at : at + size])
            else:
                where = self._log.path_of(offset)
                log.error("No record of %d bytes at offset %d, in %s", size, offset, where)


def is_record(data: bytes, offset: int, size: int | None = None, at: int = 0) -> bool:
    """Tell whether a record that says it lies at `offset` begins at `at` of `data`."""
    if len(data) < at + (size or RECORD_BYTES_MIN):
        return False
    actual, magic = RECORD_HEAD.unpack_from(data, at)
    return (
        magic in _RECORD_MAGICS
        and (size is None or size == actual)
        and _LONG.unpack_from(data, at + PHYSICAL_OFFSET_AT)[0] == offset
    )


def store_timestamp_in(head: bytes) -> int:
    """Return the store time of a record from its first bytes."""
    is_v6 = head[SYS_FLAG_AT + 3] & BORN_HOST_V6
    return int(_LONG.unpack_from(head, STORE_TIMESTAMP_AT + (_V6_EXTRA if is_v6 else 0))[0])


class Reader:
    """Answers the questions of consumers and administrators. Event loop only."""

    def __init__(
        self,
        parts: StoreParts,
        hasher: KeyHasher,
        settings: Callable[[], BrokerConfig],
        memory_bytes: int,
    ) -> None:
        self._records = LogReader(parts.log)
        self._log = parts.log
        self._index = parts.index
        self._hasher = hasher
        self._settings = settings
        self._memory_bytes = memory_bytes

    # -- by offset of the log --

    def record(self, offset: int, size: int | None = None) -> bytes | None:
        """Return the record that begins at an offset, or None when none does."""
        return self._records.record(offset, size)

    def store_timestamp(self, offset: int) -> int:
        """Return when the record at an offset was stored, in ms, or -1 when there is none."""
        return self._records.store_timestamp(offset)

    # -- by queue --

    def get(
        self,
        queue: ConsumeQueue | None,
        offset: int,
        max_count: int,
        max_bytes: int | None,
        accept: Accept | None,
    ) -> GetResult:
        """Read up to `max_count` messages from `offset` of a queue on."""
        if queue is None:
            return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, (), 0, 0, 0)
        low, high = queue.min_offset, queue.max_offset
        if high == 0:
            return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, (), 0, low, high)
        if offset < low:
            return GetResult(GetStatus.OFFSET_TOO_SMALL, (), low, low, high)
        if offset == high:
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, (), offset, low, high)
        if offset > high:
            return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, (), high, low, high)
        chosen = self._choose(
            queue.units(offset, self._scanned_max()), max_count, max_bytes, accept
        )
        if chosen.seen == 0:
            after = queue.next_file_offset(offset)
            return GetResult(GetStatus.OFFSET_FOUND_NULL, (), after, low, high)
        records = self._records.records(chosen.units)
        status = chosen.status
        if chosen.units and not records:
            status = GetStatus.MESSAGE_WAS_REMOVING
        is_slow = self._log.written - chosen.last_physical > self._in_memory_bytes()
        return GetResult(status, records, offset + chosen.seen, low, high, is_slow)

    def _choose(
        self,
        units: Iterator[QueueUnit],
        max_count: int,
        max_bytes: int | None,
        accept: Accept | None,
    ) -> _Chosen:
        """Pick units until the answer is full."""
        in_memory_from = self._log.written - self._in_memory_bytes()
        in_memory, on_disk = self._limits(max_count, max_bytes)
        min_physical = self._log.min_offset
        status = GetStatus.NO_MATCHED_MESSAGE
        chosen: list[QueueUnit] = []
        total = seen = last = 0
        for unit in units:
            last, size, tags_code = unit
            if chosen:
                count_max, bytes_max = in_memory if last >= in_memory_from else on_disk
                if len(chosen) >= count_max or total + size > bytes_max:
                    break
            seen += 1
            if size == BLANK_SIZE or last < min_physical:
                status = GetStatus.MESSAGE_WAS_REMOVING
            elif accept is None or accept(tags_code):
                chosen.append(unit)
                total += size
        return _Chosen(GetStatus.FOUND if chosen else status, chosen, seen, last)

    def _limits(self, max_count: int, max_bytes: int | None) -> tuple[Limit, Limit]:
        """Return how many messages and bytes one answer may have, from memory and from disk."""
        config = self._settings()
        limits = (
            (
                config.max_transfer_count_on_message_in_memory,
                config.max_transfer_bytes_on_message_in_memory,
            ),
            (
                config.max_transfer_count_on_message_in_disk,
                config.max_transfer_bytes_on_message_in_disk,
            ),
        )
        in_memory, on_disk = (
            (min(count, max_count), size if max_bytes is None else min(size, max_bytes))
            for count, size in limits
        )
        return in_memory, on_disk

    def _scanned_max(self) -> int:
        """How many units one read looks at, whatever the consumer asks for."""
        return max(
            SCANNED_BYTES_MAX // UNIT_BYTES,
            self._settings().max_transfer_count_on_message_in_memory,
        )

    def _in_memory_bytes(self) -> int:
        return self._memory_bytes * self._settings().access_message_in_memory_max_ratio // 100

    # -- by time --

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int) -> int:
        """Return the offset of the message stored next to a time, the earlier one when in doubt.

        A time after the newest message gives the newest, as RocketMQ 4.9 has it.
        """
        low, high = queue.min_offset, queue.max_offset
        while low < high:
            middle = (low + high) // 2
            if self.store_time_of(queue, middle) >= timestamp_ms:
                high = middle
            else:
                low = middle + 1
        if low == queue.min_offset:
            return low
        if low == queue.max_offset:
            return low - 1
        behind = self.store_time_of(queue, low) - timestamp_ms
        before = timestamp_ms - self.store_time_of(queue, low - 1)
        return low if behind < before or behind == 0 else low - 1

    def store_time_of(self, queue: ConsumeQueue, offset: int) -> int:
        """Return when a message of a queue was stored, in ms, or -1 when it is not there."""
        unit = queue.unit(offset) if offset >= 0 else None
        if unit is None or unit.size == BLANK_SIZE:
            return -1
        return self._records.store_timestamp(unit.offset_physical)

    # -- by key --

    def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """Find messages by key, newest first up to a number, and return them oldest first.

        Messages with other keys of the same hash may be among them; clients compare.
        """
        count = min(max_count, self._settings().max_msgs_num_batch)
        key_hash = self._hasher.key_hash(topic, key)
        offsets = sorted(set(self._index.find(key_hash, begin_ms, end_ms, count)))
        found = (self._records.record(each) for each in offsets)
        return QueryResult(
            [each for each in found if each is not None],
            self._index.end_timestamp,
            max(self._index.end_physical, 0),
        )
