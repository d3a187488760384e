"""Records that were made elsewhere, by the kernel: into the log, their queues and the index.

This is the second way into the store beside Appender.put. Whoever makes records asks for the place
first, may keep what is made until the end of the turn, and hands it over at once when the store
asks for it: what is put, written or removed comes behind it.
"""

from collections.abc import Callable, Iterable

from core_broker.store.appender import Appender
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Buffer
from core_broker.store.index_items import IndexEntries
from core_broker.store.layout import StoreParts


class MadeRecords:
    """Takes records between two calls of `write_staged`. Event loop only."""

    def __init__(self, parts: StoreParts, appender: Appender) -> None:
        #: The store time of what is staged now, in ms.
        self.now_ms: Callable[[], int] = appender.now
        #: The queue of a legal topic.
        self.queue = parts.queues.get_or_create
        #: Where there is room, and how much.
        self.room: Callable[[], int] = appender.room
        self._appender = appender
        self._log = parts.log
        self._queues = parts.queues
        #: Stages what is kept now, if anything is.
        self._stage_kept: Callable[[], None] | None = None
        appender.settle_made = self.settle

    @property
    def position(self) -> int:
        """Where the next record goes."""
        return self._log.position

    def keep(self, stage: Callable[[], None]) -> None:
        """Have `stage` called once, before anything else is put, written or removed.

        What another maker keeps is staged at once.
        """
        if self._stage_kept is not stage:
            self.settle()
            self._stage_kept = stage

    def settle(self) -> None:
        """Have staged what is kept."""
        stage = self._stage_kept
        if stage is not None:
            self._stage_kept = None
            stage()

    @property
    def queue_removals(self) -> int:
        """How many queues were removed since the start; then `queue` must be asked again."""
        return self._queues.removals

    def stage(
        self,
        records: Buffer,
        newest: int,
        messages: int,
        queues: Iterable[tuple[ConsumeQueue, bytes, int]],
        entries: IndexEntries,
        now_ms: int,
    ) -> None:
        """Stage so many records that lie at `position` on, within `room`, with all of theirs.

        `newest` is where the last one begins; of each queue come its units and where its last
        record ends. They are stored and visible after the next `write_staged`, or not at all.
        """
        self._queues.append_made(queues)
        self._appender.stage_made(records, newest, messages, entries, now_ms)
