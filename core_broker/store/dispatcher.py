"""From the commit log to what is derived from it: consume queues and key index.

On the usual path a message enters queue and index in the same step as the log, with what the put
knows anyway. Where only the log is there, after a crash, records are dispatched one by one; a
record that is in its queue already is passed over, so this may begin anywhere before the end.
Compatible with RocketMQ's CommitLogDispatcherBuildConsumeQueue and …BuildIndex.
"""

from collections import deque

from core_broker.message import sysflag
from core_broker.message.hashing import tags_code
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TAGS,
    decode_properties,
)
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.consume_queues import ArrivalListener, ConsumeQueues
from core_broker.store.key_hash import KeyHasher
from core_broker.store.key_index import KeyIndex
from core_broker.store.log_scan import LogRecord

#: Tags whose codes are kept; then all are forgotten.
TAGS_MAX = 4096
#: Transaction types whose messages consumers see.
QUEUED = frozenset({sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT})


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
        self._delay_levels_ms = delay_levels_ms
        self._is_indexing = is_indexing
        self._tags_codes: dict[str, int] = {}
        #: Queues that had to skip offsets, because messages before them are not in the log scanned.
        self.gaps: set[tuple[str, int]] = set()
        #: What waits for the index: hashes, physical offset, store time.
        self._to_index: deque[tuple[list[int], int, int]] = deque()

    # -- with the put --

    def stage(
        self,
        queue: ConsumeQueue,
        properties: dict[str, str],
        sys_flag: int,
        place: tuple[int, int, int],
    ) -> None:
        """Enter a message that is being appended at `place`: offset, size and store time."""
        offset, size, stored_at = place
        kind = sys_flag & sysflag.TRANSACTION_MASK
        if kind in QUEUED:
            code = self._tags_code(queue.topic, properties, stored_at)
            self._queues.append(queue, offset, size, code)
        if self._is_indexing and kind != sysflag.TRANSACTION_ROLLBACK:
            hashes = self._hasher.message_hashes(queue.topic, properties)
            if hashes:
                self._to_index.append((hashes, offset, stored_at))

    def rollback(self) -> None:
        """Forget what was staged: it did not get into the log."""
        self._queues.rollback()
        self._to_index.clear()

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Make visible what was staged.

        When a disk fails, all of it is still in memory and readable, but OSError is raised and
        `settle` must succeed before more is staged.
        """
        self._queues.publish(listeners)
        self.settle()

    def settle(self) -> None:
        """Carry on what a failing disk interrupted; raises OSError when it still fails."""
        waiting = self._to_index
        while waiting:
            self._index.add(*waiting[0])
            waiting.popleft()
        self._index.write_full_tail()
        self._queues.write_full_tails()

    # -- from the log --

    def dispatch(self, record: LogRecord) -> None:
        """Enter a record of the log, unless it is there already."""
        kind = record.sys_flag & sysflag.TRANSACTION_MASK
        if kind in QUEUED:
            self._dispatch_to_queue(record)
        if not self._is_indexing or kind == sysflag.TRANSACTION_ROLLBACK:
            return
        if record.offset > self._index.end_physical:
            properties = decode_properties(record.properties)
            hashes = self._hasher.message_hashes(record.topic, properties)
            self._index.add(hashes, record.offset, record.store_timestamp)
            self._index.write_full_tail()

    def _dispatch_to_queue(self, record: LogRecord) -> None:
        queue = self._queues.get_or_create(record.topic, record.queue_id)
        if record.offset + record.size <= queue.end_physical:
            return
        if record.queue_offset < queue.next_offset:
            # The topic was deleted and created again: its offsets began anew.
            queue.cut(record.queue_offset)
        if record.queue_offset > queue.next_offset:
            self.gaps.add((record.topic, record.queue_id))
            queue.start_at(record.queue_offset)
        properties = decode_properties(record.properties)
        code = self._tags_code(record.topic, properties, record.store_timestamp)
        self._queues.append(queue, record.offset, record.size, code)
        self._queues.publish([])
        self._queues.write_full_tails()

    # -- tags --

    def _tags_code(self, topic: str, properties: dict[str, str], stored_at: int) -> int:
        if topic == SCHEDULE_TOPIC:
            level = self._delay_level(properties)
            if level:
                return stored_at + self._delay_levels_ms[level - 1]
        tags = properties.get(PROPERTY_TAGS)
        if not tags:
            return 0
        code = self._tags_codes.get(tags)
        if code is None:
            if len(self._tags_codes) >= TAGS_MAX:
                self._tags_codes.clear()
            code = self._tags_codes[tags] = tags_code(tags)
        return code

    def _delay_level(self, properties: dict[str, str]) -> int:
        """The level of a delayed message, 0 without one; too high ones count as the highest."""
        text = properties.get(PROPERTY_DELAY_TIME_LEVEL, "0")
        return min(int(text), len(self._delay_levels_ms)) if text.isdecimal() else 0
