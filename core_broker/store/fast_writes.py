"""Writes of the fast path: records encoded outside the store, for log, queues and index.

The store has two write interfaces: Appender.put, and this one. The fast path asks for the position
first, may hold the encoded records until the end of the event-loop iteration, and stages them when
the store asks: puts, writes and removals come after held records.
"""

from collections.abc import Callable

from core_broker.store.appender import Appender
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Buffer
from core_broker.store.index_items import IndexEntries
from core_broker.store.layout import StoreParts


class FastWrites:
    """Accepts encoded records between two calls of `write_staged`. Event loop only."""

    def __init__(self, parts: StoreParts, appender: Appender) -> None:
        #: Returns the queue of a legal topic.
        self.queue = parts.queues.get_or_create
        #: Capacity behind the position of the next record, bytes.
        self.capacity_bytes: Callable[[], int] = appender.capacity_bytes
        self._appender = appender
        self._begin_put: Callable[[], int] = appender.begin_put
        self._log = parts.log
        self._queues = parts.queues
        #: Stages the held records; None without held records.
        self._stage_held: Callable[[], None] | None = None
        appender.stage_pending = self.settle

    def begin(self, stage: Callable[[], None]) -> tuple[int, int, int]:
        """Register `stage` for one call before the next put, write or removal.

        Returns the physical offset of the next record, the capacity behind it, bytes, and the store
        time of records staged now, ms. The caller has called `settle` before.
        """
        self._stage_held = stage
        return self._log.position, self.capacity_bytes(), self._begin_put()

    def settle(self) -> None:
        """Stage the held records."""
        stage = self._stage_held
        if stage is not None:
            self._stage_held = None
            stage()

    @property
    def queue_removals(self) -> int:
        """Number of queues removed since the start; a change makes cached queues invalid."""
        return self._queues.removals

    def stage(
        self,
        records: Buffer,
        newest: int,
        messages: int,
        enter_units: Callable[[set[ConsumeQueue]], None],
        entries: IndexEntries,
        now_ms: int,
    ) -> None:
        """Stage encoded records for the position of `begin` with their units and index entries.

        `records` has at most `capacity_bytes()` bytes; the last record begins at `newest`.
        `enter_units` appends the units to their queues, and adds the queues to a set. The next
        `write_staged` stores all of them or none.
        """
        self._queues.append_encoded(enter_units)
        self._appender.stage_encoded(records, newest, messages, entries, now_ms)
