"""Reads single records, and runs of records, from the log.

A reader of a queue gets a record only when size, physical offset, queue id, queue offset and topic
in the record match the queue's unit, and the body matches its checksum. So damage never delivers a
wrong message. A damaged unit is rebuilt first (unit_repairs.py); a damaged record is skipped.
"""

from collections.abc import Sequence
from zlib import crc32

from core_broker.message.layout import INT, LONG, SHORT
from core_broker.message.record_layout import (
    CRC_MASK,
    HEAD,
    PHYSICAL_OFFSET_AT,
    RECORD_BYTES_MIN,
    RECORD_MAGIC_V1,
    RECORD_MAGICS,
    RECORD_START,
    STORE_TIMESTAMP_AT,
    SYS_FLAG_AT,
    V6_EXTRA_BYTES,
    V6_HOSTS,
)
from core_broker.message.sysflag import BORN_HOST_V6
from core_broker.store.cold_reads import ColdRead
from core_broker.store.commit_log import CommitLog
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.damage import Damage
from core_broker.store.unit_layout import LIGHT_QUEUE_PREFIX
from core_broker.store.unit_repairs import UnitRepairs

#: Maximum gap between records of one read, bytes.
GAP_BYTES_MAX = 16 * 1024
#: Maximum size of one read of several records, bytes.
SPAN_BYTES_MAX = 1024 * 1024

#: The fields checked against a unit; body_bytes is right with IPv4 hosts only.
_IDENTITY = HEAD.select(
    *("store_size", "magic", "body_crc", "queue_id", "queue_offset", "physical_offset"),
    *("sys_flag", "body_bytes"),
)
_BODY_AT = HEAD.size
_identity = _IDENTITY.unpack_from
_SHORT_BYTES = SHORT.size
_short = SHORT.unpack_from


#: One encoded record.
Record = bytes | memoryview
#: A requested message: queue offset, physical offset and size, by the queue's unit.
Wanted = tuple[int, int, int]


class Owner:
    """Checks that records belong to a queue."""

    __slots__ = ("_is_light", "_long_topic", "_queue_id", "_topic", "queue")

    def __init__(self, queue: ConsumeQueue) -> None:
        topic = queue.topic.encode()
        self.queue = queue
        self._queue_id = queue.queue_id
        self._is_light = queue.topic.startswith(LIGHT_QUEUE_PREFIX)
        # The encoded topic with its length, for magic 1 and magic 2.
        self._topic = bytes((len(topic) & 0xFF,)) + topic
        self._long_topic = len(topic).to_bytes(2, "big") + topic

    def owns_all(self, data: bytes | bytearray, start: int, wanted: Sequence[Wanted]) -> bool:
        """Return whether all requested records are in `data`, which begins at log offset `start`.

        Checks records with IPv4 hosts and a short topic only, for speed; `owns` checks any record.
        """
        view, data_end, own_id = memoryview(data), len(data), self._queue_id
        topic, topic_bytes = self._topic, len(self._topic)
        if self._is_light:
            return False
        for logical, offset, size in wanted:
            at = offset - start
            end = at + size
            if size < RECORD_BYTES_MIN or end > data_end:
                return False
            found_size, magic, crc, queue_id, found, physical, flags, body = _identity(data, at)
            if found_size != size or physical != offset or found != logical or queue_id != own_id:
                return False
            body_end = at + _BODY_AT + body
            left = end - body_end - topic_bytes - _SHORT_BYTES
            if left < 0 or magic != RECORD_MAGIC_V1 or flags & V6_HOSTS:
                return False
            if not data.startswith(topic, body_end) or (left,) != _short(
                data, end - left - _SHORT_BYTES
            ):
                return False
            if crc32(view[at + _BODY_AT : body_end]) & CRC_MASK != crc:
                return False
        return True

    def owns(
        self,
        data: bytes | bytearray,
        at: int,
        logical: int,
        offset: int,
        size: int,
        *,
        check_crc: bool = True,
    ) -> bool:
        """Return whether `data` contains the requested record at `at`."""
        if size < RECORD_BYTES_MIN or at + size > len(data):
            return False
        found_size, magic, crc, queue_id, found, physical, flags, body = _identity(data, at)
        if found_size != size or physical != offset or magic not in RECORD_MAGICS:
            return False
        if queue_id != self._queue_id or found != logical:
            return self._is_light
        topic_at = at + _BODY_AT
        if flags & V6_HOSTS:
            topic_at += V6_EXTRA_BYTES * (flags & V6_HOSTS).bit_count()
            (body,) = INT.unpack_from(data, topic_at - INT.size)
        end = topic_at + body
        if not self._is_light:
            topic = self._topic if magic == RECORD_MAGIC_V1 else self._long_topic
            left = at + size - end - len(topic) - SHORT.size
            if left < 0 or not data.startswith(topic + SHORT.pack(left & 0xFFFF), end):
                return False
        return not check_crc or crc32(memoryview(data)[topic_at:end]) & CRC_MASK == crc


class LogReader:
    """Reads records and reports damage."""

    def __init__(
        self, commit_log: CommitLog, damage: Damage, repairs: UnitRepairs | None = None
    ) -> None:
        self._log = commit_log
        self._damage = damage
        self._repairs = repairs

    def record(self, offset: int, size: int | None = None) -> bytes | None:
        """Return the record at an offset, or None without one."""
        if offset < self._log.min_offset:
            return None
        if size is None:
            head = self._log.read(offset, RECORD_BYTES_MIN)
            if not is_record(head, offset):
                return None
            (size, _) = RECORD_START.unpack_from(head)
        data = self._log.read(offset, size)
        return bytes(data) if len(data) == size and is_record(data, offset, size) else None

    def store_timestamp(self, offset: int) -> int:
        """Return the store time of the record at an offset, ms; -1 without a record."""
        if offset < self._log.min_offset:
            return -1
        head = self._log.read(offset, RECORD_BYTES_MIN)
        return store_timestamp_in(head) if is_record(head, offset) else -1

    def first_timestamp(self, position: int) -> int:
        """Return the store time of the record at a log position, ms; -1 without a record."""
        return self.store_timestamp(position + self._log.framing.header_bytes)

    def store_time_of(self, queue: ConsumeQueue, wanted: Wanted) -> int:
        """Return the store time of a message of a queue, ms; -1 without the message."""
        logical, offset, size = wanted
        if not self._log.min_offset <= offset <= self._log.written - size or size <= 0:
            return -1
        head = self._log.read(offset, RECORD_BYTES_MIN)
        if not is_record(head, offset):
            self._report(queue, wanted)
            return -1
        found_size, _, _, queue_id, found, *_ = _identity(head)
        is_light = queue.topic.startswith(LIGHT_QUEUE_PREFIX)
        if found_size != size or ((queue_id, found) != (queue.queue_id, logical) and not is_light):
            self._report(queue, wanted)
            return -1
        return store_timestamp_in(head)

    def records(self, queue: ConsumeQueue, wanted: Sequence[Wanted]) -> list[Record]:
        """Return messages of a queue in order, with few reads; skip damaged messages.

        Raises DamagedUnit for a damaged unit that can be rebuilt.
        """
        owner = Owner(queue)
        found: list[Record] = []
        cold: ColdRead | None = None
        first = 0
        while first < len(wanted):
            _, start, size = wanted[first]
            end = start + size
            limit = min(self._log.segment_end(start), start + SPAN_BYTES_MAX)
            stop = first + 1
            while stop < len(wanted):
                _, offset, size = wanted[stop]
                if not 0 <= offset - end <= GAP_BYTES_MAX or offset + size > limit:
                    break
                end = offset + size
                stop += 1
            try:
                self._read_span(owner, wanted[first:stop], end, found)
            except ColdRead as missing:  # one cold read brings all spans
                cold = missing if cold is None else cold.add(missing)
            first = stop
        if cold is not None:
            raise cold
        return found

    def _read_span(
        self,
        owner: Owner,
        wanted: Sequence[Wanted],
        end: int,
        found: list[Record],
    ) -> None:
        start = wanted[0][1]
        if end - start > SPAN_BYTES_MAX:
            # One large record, or a damaged unit with a huge size.
            head = self._log.read(start, RECORD_BYTES_MIN)
            if not is_record(head, start) or RECORD_START.unpack_from(head)[0] != end - start:
                self._skip(owner.queue, wanted[0])
                return
        data = self._log.read_span(start, end - start)
        view = memoryview(data)
        if owner.owns_all(data, start, wanted):
            found += [view[offset - start : offset - start + size] for _, offset, size in wanted]
            return
        for logical, offset, size in wanted:
            at = offset - start
            if owner.owns(data, at, logical, offset, size):
                found.append(view[at : at + size])
            else:
                self._skip(owner.queue, (logical, offset, size))

    def _skip(self, queue: ConsumeQueue, wanted: Wanted) -> None:
        """Report a message that cannot be read, after an attempt to rebuild the unit."""
        if self._repairs is not None:
            self._repairs.require(queue, wanted[0])
        self._report(queue, wanted)

    def is_own(self, queue: ConsumeQueue, wanted: Wanted) -> bool:
        """Return whether a unit points to its record, whose body may be damaged."""
        logical, offset, size = wanted
        data = self._log.read(offset, size)
        return Owner(queue).owns(data, 0, logical, offset, size, check_crc=False)

    def _report(self, queue: ConsumeQueue, wanted: Wanted) -> None:
        """Report damage of the queue when a record is at the unit's offset, else of the log."""
        logical, offset, size = wanted
        try:
            head = self._log.read(offset, RECORD_BYTES_MIN)
        except ColdRead:
            head = b""
        if is_record(head, offset):
            path, at = queue.location_of(logical)
            reason = f"the record at {offset} of the log, to which it points, is another one"
        else:
            path, at = self._log.path_of(offset), offset % self._log.segment_size
            unit_path, unit_at = queue.location_of(logical)
            reason = (
                f"no record of {size} bytes begins at offset {offset} of the log,"
                f" as {unit_path} says at {unit_at}"
            )
        self._damage.report(path, at, reason)


def is_record(data: bytes | bytearray, offset: int, size: int | None = None, at: int = 0) -> bool:
    """Return whether a record with the physical offset `offset` begins at `at` of `data`."""
    if len(data) < at + (size or RECORD_BYTES_MIN):
        return False
    actual, magic = RECORD_START.unpack_from(data, at)
    return (
        magic in RECORD_MAGICS
        and (size is None or size == actual)
        and LONG.unpack_from(data, at + PHYSICAL_OFFSET_AT)[0] == offset
    )


def store_timestamp_in(head: bytes | bytearray) -> int:
    """Return the store time in the head of a record, ms."""
    is_v6 = head[SYS_FLAG_AT + 3] & BORN_HOST_V6
    return int(LONG.unpack_from(head, STORE_TIMESTAMP_AT + (V6_EXTRA_BYTES if is_v6 else 0))[0])
