"""Puts messages: each into the staging buffer, all to the files once per event-loop iteration.

A message is checked, encoded with its offsets, and staged together with its queue unit and index
items. `write_staged` writes the staged bytes and makes the messages visible. Before `write_staged`
no message of the iteration may be acknowledged; when it fails, no message of the iteration is
stored. Compatible with RocketMQ's CommitLog.asyncPutMessage and asyncPutMessages.
"""

import struct
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from core_broker.config import BrokerConfig
from core_broker.errors import StoreReadOnly
from core_broker.limits import PROPERTIES_BYTES_MAX
from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.properties import encode_properties
from core_broker.message.record import encode_record
from core_broker.message.record_layout import BLANK_BYTES, TOPIC_BYTES_V1_MAX
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.consume_queues import ArrivalListener, is_folder_name
from core_broker.store.dispatcher import QUEUED, Dispatcher
from core_broker.store.files import Buffer
from core_broker.store.flusher import Flusher
from core_broker.store.framing import ENTRY_BYTES_MAX
from core_broker.store.health import Health
from core_broker.store.index_items import IndexEntries
from core_broker.store.layout import StoreParts
from core_broker.store.preallocation import Preallocator
from core_broker.store.results import PutResult, PutStatus
from core_broker.store.stats import Counters

#: Maximum staged bytes of one event-loop iteration.
STAGED_BYTES_MAX = 64 * 1024 * 1024


#: A write to the log: begin of its first put, begin and end of the write, in seconds of the
#: monotonic clock, and number of its messages. A plain tuple, for a write may have one message.
Written = tuple[float, float, float, int]


class Appender:
    """The only writer of the log. Event loop only."""

    def __init__(
        self,
        parts: StoreParts,
        dispatcher: Dispatcher,
        flusher: Flusher,
        preallocator: Preallocator,
        health: Health,
        counters: Counters,
        settings: Callable[[], BrokerConfig],
        clock_ms: Callable[[], int],
    ) -> None:
        #: Called for each queue in which messages became visible.
        self.listeners: list[ArrivalListener] = []
        #: Called after each write to the log, once the messages are visible.
        self.write_listeners: list[Callable[[], None]] = []
        #: Store time of the newest message, ms; never decreases.
        self.store_timestamp = 0
        #: Duration of the last write, seconds.
        self.write_time_s = 0.0
        #: True on a slave: the log is a copy of its master's log, and all puts are refused.
        self.is_replica = settings().broker_role == "SLAVE"
        self._entries = parts.log.entries
        self._header_bytes = parts.log.framing.header_bytes
        #: Stages the records that a fast path holds; called first by every put and write.
        self.stage_pending: Callable[[], None] = _no_pending
        self._log = parts.log
        self._queues = parts.queues
        self._dispatcher = dispatcher
        self._flusher = flusher
        self._preallocator = preallocator
        self._health = health
        self._counters = counters
        self._settings = settings
        self._clock_ms = clock_ms
        #: Begin of the first put since the last write, in seconds of the monotonic clock.
        self._put_began = 0.0
        #: `put_times` of the counters at the last write.
        self._written_puts = 0

    # -- put --

    def put(self, inner: MessageInner) -> PutResult:
        """Stage one message."""
        self.stage_pending()
        status = self._refusal(inner)
        if status is not None:
            return self._refuse(status)
        now = self.begin_put()
        queue = self._queues.get_or_create(inner.topic, inner.queue_id)
        record = self._encode(inner, queue.next_offset, self._next_offset, now)
        if isinstance(record, bytes):
            size = self._header_bytes + len(record)
            if self._entries is not None and size > ENTRY_BYTES_MAX:
                return self._refuse(PutStatus.MESSAGE_ILLEGAL)
            if not self._log.fits(size):
                if self._entries is not None and self._preallocator.is_disk_full:
                    # No log of DLedger ends with the blank end of a segment.
                    return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE)
                record = self._roll(size) or self._encode(
                    inner, queue.next_offset, self._next_offset, now
                )
        if isinstance(record, PutStatus):
            return self._refuse(record)
        if not self._preallocator.has_space(len(record)):
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE)
        self.store_timestamp = now
        return self._stage(queue, inner, record, now)

    def put_batch(self, inners: Sequence[MessageInner]) -> list[PutResult]:
        """Stage messages contiguously in one segment; all of them or none.

        The sum of the body sizes is limited by `maxMessageSize`, as one body is.
        """
        self.stage_pending()
        refusals = [status for each in inners if (status := self._refusal(each)) is not None]
        if sum(len(each.body) for each in inners) > self._settings().max_message_size:
            refusals.append(PutStatus.MESSAGE_ILLEGAL)
        if refusals:
            return [self._refuse(refusals[0]) for _ in inners]
        if self._entries is not None:
            return self._put_entries(inners)
        now = self.begin_put()
        records = self._encode_all(inners, now)
        if not isinstance(records, PutStatus):
            size = sum(map(len, records))
            if not self._log.fits(size):
                records = self._roll(size) or self._encode_all(inners, now)
        if isinstance(records, PutStatus):
            status = records
            return [self._refuse(status) for _ in inners]
        if not self._preallocator.has_space(sum(map(len, records))):
            return [self._refuse(PutStatus.SERVICE_NOT_AVAILABLE) for _ in inners]
        self.store_timestamp = now
        return [
            self._stage(self._queues.get_or_create(inner.topic, inner.queue_id), inner, record, now)
            for inner, record in zip(inners, records, strict=True)
        ]

    def _put_entries(self, inners: Sequence[MessageInner]) -> list[PutResult]:
        """Stage each message as an entry of its own, as DLedger does, in one segment or in two.

        When one is refused, all count as refused, although the ones before it are stored.
        """
        results: list[PutResult] = []
        for inner in inners:
            results.append(self.put(inner))
            if results[-1].status is not PutStatus.PUT_OK:
                return [results[-1] for _ in inners]
        return results

    @property
    def _next_offset(self) -> int:
        """Physical offset of the next record."""
        return self._log.position + self._header_bytes

    def capacity_bytes(self) -> int:
        """Maximum size, bytes, for the next `stage_encoded`; larger records must use `put`."""
        log = self._log
        if self._entries is not None:
            return 0  # a fast path encodes no entries of DLedger
        if self.is_replica or self._health.reason is not None or self._preallocator.is_disk_full:
            return 0
        unwritten = log.position - log.written
        return min(log.active.end - BLANK_BYTES - log.position, STAGED_BYTES_MAX - unwritten)

    def stage_encoded(
        self, records: Buffer, newest: int, messages: int, entries: IndexEntries, now: int
    ) -> None:
        """Stage records encoded for this position; the caller has appended their units."""
        self.store_timestamp = now
        self._dispatcher.stage_entries(entries)
        self._log.stage_many(records, newest)
        self._counters.put_times += messages
        self._counters.put_bytes += len(records)

    def begin_put(self) -> int:
        """Return the store time of the next message, ms; never decreases."""
        if self._log.position == self._log.written:
            self._put_began = time.monotonic()
        now, newest = self._clock_ms(), self.store_timestamp
        return now if now > newest else newest

    def _refusal(self, inner: MessageInner) -> PutStatus | None:
        """Return the refusal that is known before encoding, or None."""
        if self.is_replica or self._health.reason is not None:
            return PutStatus.SERVICE_NOT_AVAILABLE
        if self._log.position - self._log.written > STAGED_BYTES_MAX:
            return PutStatus.OS_PAGE_CACHE_BUSY
        if len(inner.body) > self._settings().max_message_size:
            return PutStatus.MESSAGE_ILLEGAL
        if self._queues.get(inner.topic, inner.queue_id) is None:
            is_legal = is_folder_name(inner.topic) and len(inner.topic) <= TOPIC_BYTES_V1_MAX
            return None if is_legal else PutStatus.MESSAGE_ILLEGAL
        return None

    def _encode(
        self, inner: MessageInner, queue_offset: int, position: int, now: int
    ) -> bytes | PutStatus:
        if inner.sys_flag & sysflag.TRANSACTION_MASK not in QUEUED:
            queue_offset = 0
        try:
            record = encode_record(
                inner,
                queue_offset=queue_offset,
                physical_offset=position,
                store_timestamp=now,
            )
        except struct.error:  # a number exceeds its field
            too_long = len(encode_properties(inner.properties)) > PROPERTIES_BYTES_MAX
            return PutStatus.PROPERTIES_SIZE_EXCEEDED if too_long else PutStatus.MESSAGE_ILLEGAL
        may_be_long = len(record) - len(inner.body) > PROPERTIES_BYTES_MAX
        if may_be_long and len(encode_properties(inner.properties)) > PROPERTIES_BYTES_MAX:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        return record

    def _encode_all(self, inners: Sequence[MessageInner], now: int) -> list[bytes] | PutStatus:
        position = self._log.position
        next_offsets: dict[ConsumeQueue, int] = {}
        records = []
        for inner in inners:
            queue = self._queues.get_or_create(inner.topic, inner.queue_id)
            offset = next_offsets.get(queue, queue.next_offset)
            record = self._encode(inner, offset, position, now)
            if isinstance(record, PutStatus):
                return record
            next_offsets[queue] = offset + 1
            position += len(record)
            records.append(record)
        return records

    def _roll(self, size: int) -> PutStatus | None:
        """Continue in the next segment, since `size` bytes do not fit into the active segment."""
        if size + BLANK_BYTES > self._log.segment_size:
            return PutStatus.MESSAGE_ILLEGAL
        try:
            self._log.roll()
        except OSError as error:
            self._preallocator.note(error)
            return PutStatus.SERVICE_NOT_AVAILABLE
        return None

    def _stage(
        self, queue: ConsumeQueue, inner: MessageInner, record: bytes, now: int
    ) -> PutResult:
        offset, logical, size = self._next_offset, queue.next_offset, len(record)
        self._dispatcher.stage(queue, inner, (offset, size, now))
        if self._entries is None:
            self._log.stage(record)
        else:
            self._log.stage_many(self._entries.header(self._log.position, size) + record, offset)
        self._counters.put_times += 1
        self._counters.put_bytes += size
        return PutResult(PutStatus.PUT_OK, offset, logical, size, now)

    def _refuse(self, status: PutStatus) -> PutResult:
        self._counters.put_failed += 1
        return PutResult(status)

    # -- write --

    def write_staged(self) -> Written | None:
        """Write the staged messages of this event-loop iteration and make them visible.

        Returns None without staged messages. Raises StoreReadOnly when the write fails; then no
        message of the iteration is stored.
        """
        self.stage_pending()
        if self._log.position == self._log.written:
            return None
        if self._health.has_failed:
            self._abandon(self._health.reason or "")
        began = time.monotonic()
        try:
            self._log.reserve_staged()
        except OSError as error:
            self._preallocator.note(error)
            self._abandon(str(error))
        try:
            self._log.write_staged()
        except OSError as error:
            self._health.fail(f"writing the commit log failed: {error}")
            self._abandon(str(error))
        try:
            self._dispatcher.publish(self.listeners)
        except OSError as error:
            self._health.set_lag(str(error))
        self._queues.visibility.seal(self._log.written)
        self._flusher.after_write()
        self._preallocator.advance()
        for written in self.write_listeners:
            written()
        ended, puts = time.monotonic(), self._counters.put_times
        self.write_time_s = ended - began
        messages, self._written_puts = puts - self._written_puts, puts
        return self._put_began, began, ended, messages

    def _abandon(self, reason: str) -> NoReturn:
        self._log.discard_staged()
        self._dispatcher.rollback()
        self._written_puts = self._counters.put_times
        raise StoreReadOnly(reason)


def _no_pending() -> None:
    """No fast path holds records."""
