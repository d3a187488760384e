"""From the commit log to what is derived from it: consume queues and key index.

On the usual path a message enters queue and index in the same step as the log, with what the put
knows anyway. Where only the log is there, after a crash, records are dispatched one by one; a
record that is in its queue already is passed over, so this may begin anywhere before the end.
Compatible with RocketMQ's CommitLogDispatcherBuildConsumeQueue and …BuildIndex.
"""

import logging

from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.properties import decode_properties
from core_broker.message.record import RECORD_BYTES_MIN
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.consume_queues import ArrivalListener, ConsumeQueues
from core_broker.store.index_items import IndexEntry
from core_broker.store.key_hash import KeyHasher
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
        #: Queue → a message whose offset does not follow, with its tags code, until another one
        #: confirms it. One flipped bit must not hide the messages of a queue.
        self._doubtful: dict[ConsumeQueue, tuple[LogRecord, int]] = {}
        #: Queue → the offset of its last message, which came behind a gap.
        self._unconfirmed: dict[ConsumeQueue, int] = {}
        self._lost_bytes = 0
        #: For the index: what was staged in this turn, and what is in the log.
        self._staged: list[IndexEntry] = []
        self._to_index: list[IndexEntry] = []

    # -- with the put --

    def stage(self, queue: ConsumeQueue, inner: MessageInner, place: Place) -> None:
        """Enter a message that is being appended to the log at `place`."""
        offset, size, stored_at = place
        kind = inner.sys_flag & sysflag.TRANSACTION_MASK
        if kind in QUEUED:
            code = self._tags_code(inner.topic, inner.properties, stored_at)
            self._queues.append(queue, offset, size, code)
        if self._is_indexing and kind != sysflag.TRANSACTION_ROLLBACK:
            for key_hash in self._hasher.message_hashes(inner.topic, inner.properties):
                self._staged.append((key_hash, offset, stored_at))

    def stage_entries(self, entries: list[IndexEntry]) -> None:
        """Enter index entries of messages that are being appended to the log."""
        self._staged += entries

    def rollback(self) -> None:
        """Forget what was staged: it did not get into the log."""
        self._queues.rollback()
        self._staged.clear()

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Make visible what was staged.

        When a disk fails, all of it is still in memory and readable, but OSError is raised and
        `settle` must succeed before more is staged.
        """
        self._queues.publish(listeners)
        self._to_index += self._staged
        self._staged.clear()
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
        if record.offset > (waiting[-1][1] if waiting else self._index.end_physical):
            for key_hash in self._hasher.message_hashes(record.topic, properties):
                waiting.append((key_hash, record.offset, record.store_timestamp))
        if len(waiting) >= SETTLED_ENTRIES:
            self.settle()

    def _dispatch_to_queue(self, record: LogRecord, properties: dict[str, str]) -> None:
        queue = self._queues.get_or_create(record.topic, record.queue_id)
        if record.offset + record.size <= queue.end_physical:
            return
        code = self._tags_code(record.topic, properties, record.store_timestamp)
        doubtful = self._doubtful.pop(queue, None)
        if self._unconfirmed.pop(queue, None) == record.queue_offset:
            # It was the one before this that told a wrong offset.
            self._enter(queue, record, code)
            return
        missing = record.queue_offset - queue.next_offset
        if queue.next_offset == 0 or 0 <= missing <= self._lost_bytes // RECORD_BYTES_MIN:
            self._enter(queue, record, code)
        elif doubtful is None:
            self._doubtful[queue] = (record, code)
            return
        elif record.queue_offset == doubtful[0].queue_offset + 1:
            # Two that agree: messages between are damaged, or the topic was created again.
            self._enter(queue, *doubtful)
            self._enter(queue, record, code)
            return
        elif missing == 1:
            self._enter(queue, record, code)
        else:
            self._doubtful[queue] = (record, code)
        if doubtful is not None:
            _report(doubtful[0])

    def lost(self, size: int) -> None:
        """Take note that so many bytes of the log are damaged: messages may be missing for it."""
        self._lost_bytes += size

    def decide_doubtful(self) -> None:
        """Enter messages behind a gap, or the first of a topic that was created again.

        Comes at the end of the log, where nothing follows that would confirm their offsets.
        """
        for queue, (record, code) in self._doubtful.items():
            missing = record.queue_offset - queue.next_offset
            room = (record.offset - queue.end_physical) // RECORD_BYTES_MIN
            if record.queue_offset == 0 or 0 < missing <= min(room, GAP_MAX):
                self._enter(queue, record, code)
            else:
                _report(record)
        self._doubtful.clear()
        self._unconfirmed.clear()
        self._lost_bytes = 0

    def _enter(self, queue: ConsumeQueue, record: LogRecord, code: int) -> None:
        if record.queue_offset < queue.next_offset:
            queue.cut(record.queue_offset)
        if record.queue_offset > queue.next_offset:
            self.gaps.add((record.topic, record.queue_id))
            if queue.end_physical:
                self.missing.append((queue, queue.next_offset))
            self._unconfirmed[queue] = record.queue_offset
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
