"""Dispatches messages from the commit log to the files derived from it: consume queues and index.

A put enters queue and index in the same step as the log, without parsing the record. Recovery
dispatches records from the log one by one and skips records that their queue already has, so
dispatching may start at any record. Compatible with RocketMQ's
CommitLogDispatcherBuildConsumeQueue and …BuildIndex.
"""

import logging
from array import array
from typing import NamedTuple

from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.properties import decode_properties
from core_broker.message.record_layout import RECORD_BYTES_MIN
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.consume_queues import ArrivalListener, ConsumeQueues
from core_broker.store.index_items import ENTRY_NUMBERS, IndexEntries
from core_broker.store.key_hash import KeyBatch, KeyHasher
from core_broker.store.key_index import KeyIndex
from core_broker.store.log_scan import LogRecord
from core_broker.store.plain_records import PlainRecords
from core_broker.store.tags_codes import TagsCodes

#: Maximum gap before a single message of a queue, units of 20 bytes.
GAP_MAX = 100_000
#: Index entries collected before a write while the log is read.
SETTLED_ENTRIES = 1024
#: Transaction types of messages that enter consume queues.
QUEUED = frozenset({sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT})

log = logging.getLogger(__name__)

#: Physical offset, size and store time of a message.
StoredAt = tuple[int, int, int]


class Doubt(NamedTuple):
    """A message with an unexpected offset, until the next message of the queue decides."""

    record: LogRecord
    code: int
    #: Number of consecutive messages with unexpected offsets, including this message.
    records: int


class Dispatcher:
    """Writes queues and index. Event loop only."""

    def __init__(
        self,
        queues: ConsumeQueues,
        index: KeyIndex,
        hasher: KeyHasher,
        delay_levels_ms: tuple[int, ...],
        *,
        is_indexing: bool,
    ) -> None:
        self._queues = queues
        self._index = index
        self._hasher = hasher
        self._tags_code = TagsCodes(delay_levels_ms).code
        self._is_indexing = is_indexing
        #: True while `dispatch` writes nothing, since the disk is full: all stays in memory.
        self.is_deferring = False
        #: Queues with skipped offsets: the scanned part of the log lacks earlier messages.
        self.gaps: set[tuple[str, int]] = set()
        #: Queue and first offset of each gap between two messages.
        self.missing: list[tuple[ConsumeQueue, int]] = []
        #: Pending doubts, so that one flipped bit cannot hide the messages of a queue.
        self._doubtful: dict[ConsumeQueue, Doubt] = {}
        #: Damaged ranges of the log, start and end.
        self._lost: list[tuple[int, int]] = []
        #: Unhashed keys of this iteration, entries of this iteration, entries of written records.
        self._keys = KeyBatch(hasher)
        self._staged: IndexEntries = array("q")
        self._to_index: IndexEntries = array("q")

    # -- with the put --

    def stage(self, queue: ConsumeQueue, inner: MessageInner, stored: StoredAt) -> None:
        """Enter a message that is being appended to the log."""
        offset, size, stored_at = stored
        kind = inner.sys_flag & sysflag.TRANSACTION_MASK
        if kind in QUEUED:
            code = self._tags_code(inner.topic, inner.properties, stored_at)
            self._queues.append(queue, offset, size, code)
        if self._is_indexing and kind != sysflag.TRANSACTION_ROLLBACK:
            self._keys.add(inner.topic, inner.properties, offset, stored_at)

    def stage_entries(self, entries: IndexEntries) -> None:
        """Add index entries of messages that are being appended to the log."""
        if self._keys:
            self._staged += self._keys.take()
        self._staged += entries

    def rollback(self) -> None:
        """Discard the staged units and entries: the log did not get their messages."""
        self._queues.rollback()
        self._keys.clear()
        del self._staged[:]

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Make the staged units and entries visible.

        After OSError all units and entries are in memory and readable, and `settle` must succeed
        before the next `stage`.
        """
        self._queues.publish(listeners)
        if self._keys:
            self._staged += self._keys.take()
        if self._to_index:
            self._to_index += self._staged
            del self._staged[:]
        else:
            self._to_index, self._staged = self._staged, self._to_index
        self.settle()

    def settle(self) -> None:
        """Write pending units and entries; raises OSError while the disk fails."""
        if self._to_index:
            self._index.add(self._to_index)
        self._index.write_full_tail()
        self._queues.write_full_tails()

    # -- from the log --

    def dispatch(self, record: LogRecord) -> None:
        """Enter a record of the log unless already entered; `settle` must follow the last one.

        After OSError the record is entered, and all that was not written is in memory.
        """
        kind = record.sys_flag & sysflag.TRANSACTION_MASK
        properties = decode_properties(record.properties)
        if kind in QUEUED:
            self._dispatch_to_queue(record, properties)
        if self._is_indexing and kind != sysflag.TRANSACTION_ROLLBACK:
            self._dispatch_to_index(record, properties)
        self._settle_when_due()

    def _settle_when_due(self) -> None:
        is_due = len(self._to_index) >= SETTLED_ENTRIES * ENTRY_NUMBERS
        if (is_due or self._queues.has_full_tails) and not self.is_deferring:
            self.settle()

    def dispatch_plain(self, plain: PlainRecords) -> None:
        """Enter plain records as `dispatch` enters each; the contract is the same."""
        found = [(run, self._queues.get_or_create(run.topic, run.queue_id)) for run in plain.runs]
        is_next = all(
            run.queue_offset == queue.next_offset
            and queue.end_physical <= plain.offset
            and queue not in self._doubtful
            for run, queue in found
        )
        if not is_next or plain.offset <= self._newest_indexed:
            for record in plain.records():
                self.dispatch(record)
            return
        for run, queue in found:
            units = plain.units[run.units_begin : run.units_end]
            self._queues.enter_encoded(queue, units, run.end)
        if self._is_indexing:
            self._to_index.frombytes(plain.entries)
        self._settle_when_due()

    @property
    def held_bytes(self) -> int:
        """Size of the units and index entries that are in memory only, bytes."""
        return self._queues.unwritten_bytes + len(self._to_index) * self._to_index.itemsize

    @property
    def _newest_indexed(self) -> int:
        waiting = self._to_index
        return waiting[1 - ENTRY_NUMBERS] if waiting else self._index.end_physical

    def _dispatch_to_index(self, record: LogRecord, properties: dict[str, str]) -> None:
        if record.offset > self._newest_indexed:
            for key_hash in self._hasher.message_hashes(record.topic, properties):
                self._to_index.extend((key_hash, record.offset, record.store_timestamp))

    def _dispatch_to_queue(self, record: LogRecord, properties: dict[str, str]) -> None:
        queue = self._queues.get_or_create(record.topic, record.queue_id)
        if record.offset + record.size <= queue.end_physical:
            return
        code = self._tags_code(record.topic, properties, record.store_timestamp)
        doubt = self._doubtful.pop(queue, None)
        missing = record.queue_offset - queue.next_offset
        if doubt is not None:
            self._settle_doubt(queue, doubt, record, code)
        elif not queue.next_offset or 0 <= missing <= self._lost_between(queue, record.offset):
            self._enter(queue, record, code)
        else:
            self._doubtful[queue] = Doubt(record, code, 1)

    def _settle_doubt(
        self, queue: ConsumeQueue, doubt: Doubt, record: LogRecord, code: int
    ) -> None:
        """Decide by the next message of the queue whether a doubtful offset is right."""
        before = doubt.record
        between = record.queue_offset - before.queue_offset - 1
        lost = self._lost_in(before.offset + before.size, record.offset)
        # Two consecutive offsets agree: earlier messages are lost, or the topic was created again.
        is_right = between == 0 or (
            before.queue_offset >= queue.next_offset and 0 <= between <= lost
        )
        if is_right:
            self._enter(queue, before, doubt.code)
            self._enter(queue, record, code)
            return
        _report(before)
        missing = record.queue_offset - queue.next_offset
        # A record with a wrong offset also occupies an offset of the queue.
        if 0 <= missing <= self._lost_between(queue, record.offset) + doubt.records:
            self._enter(queue, record, code)
        else:
            self._doubtful[queue] = Doubt(record, code, doubt.records + 1)

    def lost(self, start: int, end: int) -> None:
        """Record a damaged range of the log, in which messages of any queue may be missing."""
        self._lost.append((start, end))

    def _lost_between(self, queue: ConsumeQueue, offset: int) -> int:
        """Maximum number of messages of a queue lost to damage behind the last unit."""
        return self._lost_in(queue.end_physical, offset) if self._lost else 0

    def _lost_in(self, start: int, end: int) -> int:
        overlaps = (min(end, stop) - max(start, first) for first, stop in self._lost)
        return sum(size for size in overlaps if size > 0) // RECORD_BYTES_MIN

    def decide_doubtful(self) -> None:
        """Enter doubtful messages behind a gap, or at offset 0 of a topic that was created again.

        Called at the end of the log, where no later message can confirm an offset.
        """
        for queue, (record, code, _) in self._doubtful.items():
            missing = record.queue_offset - queue.next_offset
            possible = (record.offset - queue.end_physical) // RECORD_BYTES_MIN
            if record.queue_offset == 0 or 0 < missing <= min(possible, GAP_MAX):
                self._enter(queue, record, code)
            else:
                _report(record)
        self._doubtful.clear()
        self._lost.clear()

    def _enter(self, queue: ConsumeQueue, record: LogRecord, code: int) -> None:
        if record.queue_offset < queue.next_offset:
            queue.cut(record.queue_offset)
            self._queues.removals += 1
        if record.queue_offset > queue.next_offset:
            self.gaps.add((record.topic, record.queue_id))
            if queue.end_physical:
                self.missing.append((queue, queue.next_offset))
            queue.start_at(record.queue_offset)
        self._queues.enter(queue, record.offset, record.size, code)


def _report(record: LogRecord) -> None:
    log.error(
        "The record at %d cannot be message %d of queue %d of topic %s; it is left out there",
        record.offset,
        record.queue_offset,
        record.queue_id,
        record.topic,
    )
