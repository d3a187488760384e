"""Records that were made elsewhere, by the kernel: into the log, their queues and the index.

This is the second way into the store beside Appender.put. Whoever makes records asks for the place
first, may keep what is made until the end of the turn, and hands it over at once when the store
asks for it: what is put, written or removed comes behind it.
"""

from collections.abc import Callable, Iterable

from core_broker.store.appender import Appender
from core_broker.store.consume_queue import UNIT_BYTES, ConsumeQueue
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
        self._makers: list[Callable[[], None]] = []

    @property
    def position(self) -> int:
        """Where the next record goes."""
        return self._log.position

    def on_settle(self, stage: Callable[[], None]) -> None:
        """Have `stage` called before anything else is put, written or removed."""
        self._makers.append(stage)
        self._appender.settle_made = self._settle

    def _settle(self) -> None:
        for stage in self._makers:
            stage()

    @property
    def queue_removals(self) -> int:
        """How many queues were removed since the start; then `queue` must be asked again."""
        return self._queues.removals

    def stage(
        self,
        records: Buffer,
        newest: int,
        queues: Iterable[tuple[ConsumeQueue, bytes, int]],
        entries: IndexEntries,
        now_ms: int,
    ) -> None:
        """Stage records that lie at `position` on, within `room`, with all that belongs to them.

        `newest` is where the last one begins; of each queue come its units and where its last
        record ends. They are stored and visible after the next `write_staged`, or not at all.
        """
        messages = 0
        for queue, units, end in queues:
            self._queues.append_units(queue, units, end)
            messages += len(units) // UNIT_BYTES
        self._appender.stage_made(records, newest, messages, entries, now_ms)
