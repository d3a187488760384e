"""Reading single records, and runs of them, from the log.

A record is only given to a reader who knows whose it must be when it says so itself: its size, its
physical offset, its queue, its offset in there and its topic, and when its body matches its
checksum. So a damaged unit of a consume queue
or a damaged item of the index can lose a message, but never bring a wrong one. The fields are those
of core_broker/message/record.py.
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

#: Neighbouring records with no more than this between them are read by one call.
GAP_BYTES_MAX = 16 * 1024
#: But never more than this at once, beyond a single record.
SPAN_BYTES_MAX = 1024 * 1024
#: Queues of RocketMQ 5 whose units point to messages of other topics.
LIGHT_QUEUE_PREFIX = "%LMQ%"

#: The fields by which a record is checked; the body length as with IPv4 hosts.
_IDENTITY = HEAD.select(
    *("store_size", "magic", "body_crc", "queue_id", "queue_offset", "physical_offset"),
    *("sys_flag", "body_bytes"),
)
_BODY_AT = HEAD.size
_identity = _IDENTITY.unpack_from
_SHORT_BYTES = SHORT.size
_short = SHORT.unpack_from


#: One record as it lies in the log.
Record = bytes | memoryview
#: A message of a queue: its offset there, and offset and size in the log by the queue's unit.
Wanted = tuple[int, int, int]


class Owner:
    """The queue that a record must say it belongs to."""

    __slots__ = ("_is_light", "_long_topic", "_queue_id", "_topic", "queue")

    def __init__(self, queue: ConsumeQueue) -> None:
        topic = queue.topic.encode()
        self.queue = queue
        self._queue_id = queue.queue_id
        self._is_light = queue.topic.startswith(LIGHT_QUEUE_PREFIX)
        # The topic as it stands in a record, with its length before it; longer ones need magic 2.
        self._topic = bytes((len(topic) & 0xFF,)) + topic
        self._long_topic = len(topic).to_bytes(2, "big") + topic

    def owns_all(self, data: bytes | bytearray, start: int, wanted: Sequence[Wanted]) -> bool:
        """Tell whether all records wanted are usual and lie in `data`, which begins at `start`.

        Usual ones have IPv4 hosts and a short topic; it is `owns` that decides about others.
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

    def owns(self, data: bytes | bytearray, at: int, logical: int, offset: int, size: int) -> bool:
        """Tell whether the record wanted begins at `at` of `data` and ends in there."""
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
        return bool(crc32(memoryview(data)[topic_at:end]) & CRC_MASK == crc)


class LogReader:
    """Reads records; what it finds damaged it reports."""

    def __init__(self, commit_log: CommitLog, damage: Damage) -> None:
        self._log = commit_log
        self._damage = damage

    def record(self, offset: int, size: int | None = None) -> bytes | None:
        """Return the record that begins at an offset, or None when none does."""
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
        """Return when the record at an offset was stored, in ms, or -1 when there is none."""
        if offset < self._log.min_offset:
            return -1
        head = self._log.read(offset, RECORD_BYTES_MIN)
        return store_timestamp_in(head) if is_record(head, offset) else -1

    def store_time_of(self, queue: ConsumeQueue, wanted: Wanted) -> int:
        """Return when a message of a queue was stored, in ms, or -1 when it is not there."""
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
        """Return messages of a queue in order, in few reads; damaged ones are left out."""
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
            except ColdRead as missing:  # the other spans are asked for on the same trip
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
            # One large record, or a damaged unit that would have half the log read.
            head = self._log.read(start, RECORD_BYTES_MIN)
            if not is_record(head, start) or RECORD_START.unpack_from(head)[0] != end - start:
                self._report(owner.queue, wanted[0])
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
                self._report(owner.queue, (logical, offset, size))

    def _report(self, queue: ConsumeQueue, wanted: Wanted) -> None:
        """Blame the queue when a whole record lies where its unit points, else the log."""
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
    """Tell whether a record that says it lies at `offset` begins at `at` of `data`."""
    if len(data) < at + (size or RECORD_BYTES_MIN):
        return False
    actual, magic = RECORD_START.unpack_from(data, at)
    return (
        magic in RECORD_MAGICS
        and (size is None or size == actual)
        and LONG.unpack_from(data, at + PHYSICAL_OFFSET_AT)[0] == offset
    )


def store_timestamp_in(head: bytes | bytearray) -> int:
    """Return the store time of a record from its first bytes."""
    is_v6 = head[SYS_FLAG_AT + 3] & BORN_HOST_V6
    return int(LONG.unpack_from(head, STORE_TIMESTAMP_AT + (V6_EXTRA_BYTES if is_v6 else 0))[0])
