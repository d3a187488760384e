"""Reads messages: from a queue for consumers, by time, by key.

One read returns at most 32 messages or 256 KiB from memory and 8 messages or 64 KiB from disk by
default, and at least one message of any size. A message counts as in memory when its distance from
the end of the log is within `accessMessageInMemoryMaxRatio` of the machine's memory. Compatible
with RocketMQ's DefaultMessageStore.getMessage, getOffsetInQueueByTime and queryMessage.

While the broker serves, every read may raise ColdRead (cold_reads.py).
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from core_broker.config import BrokerConfig
from core_broker.message.properties import decode_properties
from core_broker.store.cold_reads import ColdRead
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.damage import Damage
from core_broker.store.key_hash import KeyHasher
from core_broker.store.key_search import KeySearch
from core_broker.store.layout import StoreParts
from core_broker.store.log_reader import LogReader, Wanted
from core_broker.store.log_scan import Flaw, parse_record
from core_broker.store.property_filter import PropertyFilter
from core_broker.store.results import GetResult, GetStatus, QueueUnit
from core_broker.store.unit_check import UnitCheck
from core_broker.store.unit_layout import BLANK_SIZE, LIGHT_QUEUE_PREFIX, UNIT_BYTES
from core_broker.store.unit_repairs import UnitRepairs

#: Size of the units scanned by one read, bytes, so that a filter cannot block the event loop.
SCANNED_BYTES_MAX = 16_000
#: Messages that a search by time tries behind an unreadable message.
PROBES_MAX = 64

#: Maximum number of messages, and of bytes.
Limit = tuple[int, int]
#: Returns whether a message matches, given its tags code.
Accept = Callable[[int], bool]


class _Chosen(NamedTuple):
    """The messages of one read, the number of scanned units, and the last unit's offset."""

    status: GetStatus
    wanted: list[Wanted]
    seen: int
    last_physical: int


def physical_memory() -> int:
    """Return the size of the machine's memory, bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Reader:
    """Serves reads of consumers and administrators. Event loop only."""

    def __init__(
        self,
        parts: StoreParts,
        hasher: KeyHasher,
        settings: Callable[[], BrokerConfig],
        memory_bytes: int,
        damage: Damage,
        repairs: UnitRepairs,
        check: UnitCheck,
    ) -> None:
        self._records = LogReader(parts.log, damage, repairs)
        self._repairs = repairs
        self._check = check
        self._damage = damage
        self._log = parts.log
        self._index = parts.index
        self._visibility = parts.queues.visibility
        self._hasher = hasher
        self._settings = settings
        self._memory_bytes = memory_bytes
        #: Start of the log, and store time of its first message, ms.
        self._earliest = (0, -1)

    # -- by offset of the log --

    def record(self, offset: int, size: int | None = None) -> bytes | None:
        """Return the record at a physical offset, or None without one."""
        return self._records.record(offset, size)

    def earliest_timestamp(self) -> int:
        """Return the store time of the first message of the log, ms; -1 without one."""
        min_offset = self._log.min_offset
        if self._earliest[0] != min_offset or self._earliest[1] < 0:
            self._earliest = (min_offset, self._records.first_timestamp(min_offset))
        return self._earliest[1]

    # -- by queue --

    def get(
        self,
        queue: ConsumeQueue | None,
        offset: int,
        max_count: int,
        max_bytes: int | None,
        accept: Accept | None,
        by_properties: PropertyFilter | None,
    ) -> GetResult:
        """Read up to `max_count` messages of a queue from `offset` on."""
        if queue is None:
            return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, (), 0, 0, 0)
        low, high = queue.min_offset, queue.max_offset
        if high < offset <= queue.end_offset:
            # The gate hides messages that this consumer has seen: it keeps its place, and waits.
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, (), offset, low, high)
        if high == 0:
            return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, (), 0, low, high)
        if offset < low:
            return GetResult(GetStatus.OFFSET_TOO_SMALL, (), low, low, high)
        if offset == high:
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, (), offset, low, high)
        if offset > high:
            return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, (), high, low, high)
        chosen = self._choose(queue, offset, (max_count, max_bytes), accept, by_properties)
        if chosen.seen == 0:
            after = queue.next_file_offset(offset)
            return GetResult(GetStatus.OFFSET_FOUND_NULL, (), after, low, high)
        records = self._records.records(queue, chosen.wanted)
        status = chosen.status
        if chosen.wanted and not records:
            status = GetStatus.MESSAGE_WAS_REMOVING
        behind = self._log.written - chosen.last_physical
        is_slow = behind > self._in_memory_bytes()
        return GetResult(status, records, offset + chosen.seen, low, high, is_slow, behind)

    def _choose(
        self,
        queue: ConsumeQueue,
        offset: int,
        asked: tuple[int, int | None],
        accept: Accept | None,
        by_properties: PropertyFilter | None,
    ) -> _Chosen:
        """Choose units up to the limits of the read."""
        end_physical = self._log.written
        in_memory_from = self.in_memory_from
        in_memory, on_disk = self.limits(*asked)
        min_physical = self._log.min_offset
        status = GetStatus.NO_MATCHED_MESSAGE
        chosen: list[Wanted] = []
        total = seen = last = 0
        for place, size, tags_code in queue.unit_tuples(offset, self.scanned_max(by_properties)):
            if chosen:
                count_max, bytes_max = in_memory if place >= in_memory_from else on_disk
                if len(chosen) >= count_max or total + size > bytes_max:
                    break
            seen += 1
            wanted = (offset + seen - 1, place, size)
            is_wanted = False
            try:
                if size == BLANK_SIZE or (
                    0 <= place < min_physical and not self._is_astray(queue, wanted[0], last)
                ):
                    status = GetStatus.MESSAGE_WAS_REMOVING
                elif size <= 0 or not min_physical <= place <= end_physical - size:
                    status = GetStatus.MESSAGE_WAS_REMOVING
                    self._skip(queue, wanted, "which is outside of the log")
                    continue
                elif accept is None or accept(tags_code):
                    is_wanted = by_properties is None or self._matches(queue, wanted, by_properties)
                elif tags_code not in queue.known_codes:
                    self._check_code(queue, wanted, tags_code)
            except ColdRead:
                if seen == 1:
                    raise
                seen -= 1
                break
            if is_wanted:
                chosen.append(wanted)
                total += size
            last = place
        return _Chosen(GetStatus.FOUND if chosen else status, chosen, seen, last)

    def _is_astray(self, queue: ConsumeQueue, offset: int, before: int) -> bool:
        """Return whether a unit that points before the log follows a unit that points into it.

        `before` is the physical offset of the unit before, 0 at the start of a read.
        """
        if not before and offset > queue.min_offset:
            unit = queue.unit(offset - 1)
            before = unit.offset_physical if unit is not None else 0
        return before >= self._log.min_offset > 0

    def _matches(self, queue: ConsumeQueue, wanted: Wanted, by_properties: PropertyFilter) -> bool:
        """Return whether the filter selects a message; a damaged unit must not hide one."""
        if by_properties.wants(self._log, wanted[1], wanted[2]):
            return True
        return not self._records.is_own(queue, wanted)

    def _check_code(self, queue: ConsumeQueue, wanted: Wanted, tags_code: int) -> None:
        """Compare a tags code that the queue had not before with the record of the unit."""
        if queue.topic.startswith(LIGHT_QUEUE_PREFIX):
            return
        offset, place, size = wanted
        record = self._check.record(self._log, (queue.topic, queue.queue_id), offset, place, size)
        if record is not None and self._check.is_right(record, tags_code):
            queue.known_codes.add(tags_code)
        else:
            self._skip(queue, wanted, "where no message has the unit's tags code")

    def _skip(self, queue: ConsumeQueue, wanted: Wanted, where: str) -> None:
        """Report a damaged unit; raises DamagedUnit while the unit can be rebuilt."""
        offset, place, size = wanted
        self._repairs.require(queue, offset)
        path, at = queue.location_of(offset)
        self._damage.report(path, at, f"unit {offset} points to {size} bytes at {place}, {where}")

    @property
    def in_memory_from(self) -> int:
        """The physical offset from which on the log counts as in memory."""
        return self._log.written - self._in_memory_bytes()

    def limits(self, max_count: int, max_bytes: int | None) -> tuple[Limit, Limit]:
        """Return the limits of one read in messages and bytes, for memory and for disk."""
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

    def scanned_max(self, by_properties: PropertyFilter | None) -> int:
        """Maximum number of units scanned by one read."""
        count = max(
            SCANNED_BYTES_MAX // UNIT_BYTES,
            self._settings().max_transfer_count_on_message_in_memory,
        )
        return count if by_properties is None else min(count, by_properties.messages_max)

    def _in_memory_bytes(self) -> int:
        return self._memory_bytes * self._settings().access_message_in_memory_max_ratio // 100

    # -- by time --

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int) -> int:
        """Return the offset of the message stored closest to a time; the earlier one at a tie.

        A time after the newest message gives the newest message, as in RocketMQ 4.9.
        """
        low, high = queue.min_offset, queue.max_offset
        while low < high:
            middle = (low + high) // 2
            probe, stored_at = self._probe(queue, middle, high)
            if stored_at >= timestamp_ms:
                high = middle
            else:
                low = probe + 1
        if low == queue.min_offset:
            return low
        if low == queue.max_offset:
            return low - 1
        low, stored_at = self._probe(queue, low, queue.max_offset)
        behind = stored_at - timestamp_ms
        before = timestamp_ms - self.store_time_of(queue, low - 1)
        return low if behind < before or behind == 0 else low - 1

    def _probe(self, queue: ConsumeQueue, middle: int, high: int) -> tuple[int, int]:
        """Return the first readable message from `middle` on, and its store time.

        Damaged messages are skipped. A message before the start of the log has the time -1.
        """
        for offset in range(middle, min(high, middle + PROBES_MAX)):
            unit = queue.unit(offset)
            if unit is None or unit.size == BLANK_SIZE:
                return offset, -1
            if 0 <= unit.offset_physical < self._log.min_offset:
                return offset, -1
            stored_at = self._time_of(queue, offset, unit)
            if stored_at >= 0:
                return offset, stored_at
        return middle, -1

    def store_time_of(self, queue: ConsumeQueue, offset: int) -> int:
        """Return the store time of a message of a queue, ms; -1 without the message."""
        unit = queue.unit(offset) if offset >= 0 else None
        if unit is None or unit.size == BLANK_SIZE:
            return -1
        return self._time_of(queue, offset, unit)

    def _time_of(self, queue: ConsumeQueue, offset: int, unit: QueueUnit) -> int:
        return self._records.store_time_of(queue, (offset, unit.offset_physical, unit.size))

    # -- by key --

    def search(self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int) -> KeySearch:
        """Prepare a search by key, newest first; call `run` on it, then `found`."""
        count = min(max_count, self._settings().max_msgs_num_batch)
        search = self._index.search(self._hasher.key_hash(topic, key), begin_ms, end_ms, count)
        search.hidden_from = self._visibility.hidden_from
        return search

    def report_flaws(self, search: KeySearch) -> None:
        """Report the damage that a finished search met."""
        for path, at, reason in search.flaws:
            self._damage.report(path, at, reason)

    def found(self, search: KeySearch, offset: int) -> bytes | None:
        """Return the visible message at an offset of a finished search, if it has the key's hash.

        The key may be a different key with the same hash; clients compare keys.
        """
        record = self._records.record(offset)
        if record is None or self._visibility.hides(offset + len(record)):
            return None
        return record if self._has_key(record, offset, search) else None

    def reach(self) -> tuple[int, int]:
        """Return the store time and the physical offset of the index's newest message."""
        return self._index.end_timestamp, max(self._index.end_physical, 0)

    def _has_key(self, record: bytes, offset: int, search: KeySearch) -> bool:
        """Return whether a record has a key with the hash of the search.

        Otherwise the item of the record is damaged, and reported.
        """
        parsed = parse_record(record, 0, offset, check_crc=False)
        if not isinstance(parsed, Flaw):
            properties = decode_properties(parsed.properties)
            if self._hasher.has_hash(parsed.topic, properties, search.key_hash):
                return True
        path, at = search.location_of(offset)
        self._damage.report(path, at, f"it points to {offset}, where another key is")
        return False
