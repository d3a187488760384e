"""From the commit log to what is derived from it: consume queues and key index.

On the usual path a message enters queue and index in the same step as the log, with what the put
knows anyway. Where only the log is there, after a crash, records are dispatched one by one; a
record that is in its queue already is passed over, so this may begin anywhere before the end.
Compatible with RocketMQ's CommitLogDispatcherBuildConsumeQueue and …BuildIndex.
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
from core_broker.store.tags_codes import TagsCodes

#: A single message may follow a gap of so many in its queue, which take 20 bytes each.
GAP_MAX = 100_000
#: Entries for the index are collected up to so many while the log is read.
SETTLED_ENTRIES = 1024
#: Transaction types whose messages consumers see.
QUEUED = frozenset({sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT})

log = logging.getLogger(__name__)

#: Where a message lies: physical offset, size, store time.
Place = tuple[int, int, int]


class Doubt(NamedTuple):
    """A message whose offset does not follow, until the next one of its queue decides."""

    record: LogRecord
    code: int
    #: So many in a row did not follow, this one included.
    places: int


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
        #: Queues that had to skip offsets, because messages before them are not in the log scanned.
        self.gaps: set[tuple[str, int]] = set()
        #: Queues and the first offset of each gap that lies between two messages.
        self.missing: list[tuple[ConsumeQueue, int]] = []
        #: One flipped bit must not hide the messages of a queue.
        self._doubtful: dict[ConsumeQueue, Doubt] = {}
        #: Damaged parts of the log, as first and end.
        self._lost: list[tuple[int, int]] = []
        #: For the index: what was staged in this turn, keys behind that, and what is in the log.
        self._keys = KeyBatch(hasher)
        self._staged: IndexEntries = array("q")
        self._to_index: IndexEntries = array("q")

    # -- with the put --

    def stage(self, queue: ConsumeQueue, inner: MessageInner, place: Place) -> None:
        """Enter a message that is being appended to the log at `place`."""
        offset, size, stored_at = place
        kind = inner.sys_flag & sysflag.TRANSACTION_MASK
        if kind in QUEUED:
            code = self._tags_code(inner.topic, inner.properties, stored_at)
            self._queues.append(queue, offset, size, code)
        if self._is_indexing and kind != sysflag.TRANSACTION_ROLLBACK:
            self._keys.add(inner.topic, inner.properties, offset, stored_at)

    def stage_entries(self, entries: IndexEntries) -> None:
        """Enter index entries of messages that are being appended to the log."""
        if self._keys:
            self._staged += self._keys.take()
        self._staged += entries

    def rollback(self) -> None:
        """Forget what was staged: it did not get into the log."""
        self._queues.rollback()
        self._keys.clear()
        del self._staged[:]

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Make visible what was staged.

        When a disk fails, all of it is still in memory and readable, but OSError is raised and
        `settle` must succeed before more is staged.
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
        """Carry on what a failing disk interrupted; raises OSError when it still fails."""
        if self._to_index:
            self._index.add(self._to_index)
        self._index.write_full_tail()
        self._queues.write_full_tails()

    # -- from the log --

    def dispatch(self, record: LogRecord) -> None:
        """Enter a record of the log, unless it is there already; `settle` must follow the last."""
        kind = record.sys_flag & sysflag.TRANSACTION_MASK
        properties = decode_properties(record.properties)
        if kind in QUEUED:
            self._dispatch_to_queue(record, properties)
        if not self._is_indexing or kind == sysflag.TRANSACTION_ROLLBACK:
            return
        waiting = self._to_index
        if record.offset > (waiting[1 - ENTRY_NUMBERS] if waiting else self._index.end_physical):
            for key_hash in self._hasher.message_hashes(record.topic, properties):
                waiting.extend((key_hash, record.offset, record.store_timestamp))
        if len(waiting) >= SETTLED_ENTRIES * ENTRY_NUMBERS:
            self.settle()

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
        """Decide by the next message whether a doubtful offset, or what came before, is right."""
        before = doubt.record
        between = record.queue_offset - before.queue_offset - 1
        lost = self._lost_in(before.offset + before.size, record.offset)
        # Two that agree: messages before them are gone, or the topic was created again.
        is_right = between == 0 or (
            before.queue_offset >= queue.next_offset and 0 <= between <= lost
        )
        if is_right:
            self._enter(queue, before, doubt.code)
            self._enter(queue, record, code)
            return
        _report(before)
        missing = record.queue_offset - queue.next_offset
        # Whoever told a wrong offset has a place in the queue all the same.
        if 0 <= missing <= self._lost_between(queue, record.offset) + doubt.places:
            self._enter(queue, record, code)
        else:
            self._doubtful[queue] = Doubt(record, code, doubt.places + 1)

    def lost(self, start: int, end: int) -> None:
        """Take note that a part of the log is damaged: messages of any queue may be missing."""
        self._lost.append((start, end))

    def _lost_between(self, queue: ConsumeQueue, offset: int) -> int:
        """How many messages behind the last one of a queue the damage can have cost at most."""
        return self._lost_in(queue.end_physical, offset) if self._lost else 0

    def _lost_in(self, start: int, end: int) -> int:
        overlaps = (min(end, stop) - max(start, first) for first, stop in self._lost)
        return sum(size for size in overlaps if size > 0) // RECORD_BYTES_MIN

    def decide_doubtful(self) -> None:
        """Enter messages behind a gap, or the first of a topic that was created again.

        Comes at the end of the log, where nothing follows that would confirm their offsets.
        """
        for queue, (record, code, _) in self._doubtful.items():
            missing = record.queue_offset - queue.next_offset
            room = (record.offset - queue.end_physical) // RECORD_BYTES_MIN
            if record.queue_offset == 0 or 0 < missing <= min(room, GAP_MAX):
                self._enter(queue, record, code)
            else:
                _report(record)
        self._doubtful.clear()
        self._lost.clear()

    def _enter(self, queue: ConsumeQueue, record: LogRecord, code: int) -> None:
        if record.queue_offset < queue.next_offset:
            queue.cut(record.queue_offset)
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
