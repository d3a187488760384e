"""What the kernel needs to hand out messages by itself.

This is the second way out of the store beside Reader.get, which answers whatever cannot be answered
here: what is not in memory, far behind, damaged or gone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from core_broker.store.cold import ColdRead
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.layout import StoreParts
from core_broker.store.reader import Reader
from core_broker.store.stats import RateMeter

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping


class HotLimits(NamedTuple):
    """What one answer may have, and how many units of a queue are looked at for it."""

    count_max: int
    bytes_max: int
    scanned_max: int


class HotReads:
    """Reads that never wait. Event loop only."""

    def __init__(self, parts: StoreParts, reader: Reader, meter: RateMeter) -> None:
        #: The queue of a topic that has, or once had, messages.
        self.queue: Callable[[str, int], ConsumeQueue | None] = parts.queues.get
        #: The piece of the log that holds an offset, mapped for this turn.
        self.mapping: Callable[[int], Mapping | None] = parts.log.mapping
        self._log = parts.log
        self._queues = parts.queues
        self._reader = reader
        #: Who counts the reads of the kernel.
        self.suppliers = meter.suppliers

    @property
    def queue_removals(self) -> int:
        """How many queues were removed since the start; then `queue` must be asked again."""
        return self._queues.removals

    @property
    def range(self) -> tuple[int, int]:
        """The part of the log that readers may have as from memory: from where and up to where."""
        log = self._log
        return max(log.min_offset, self._reader.in_memory_from), log.written

    def limits(self) -> HotLimits:
        """What one answer may have; the same until the settings change."""
        (count, size), _ = self._reader.limits(2**31, None)
        return HotLimits(count, size, self._reader.scanned_max(None))

    def units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """The bytes of units from an offset on; none when the disk would have to be asked."""
        try:
            return queue.read(offset, count)
        except ColdRead:
            return b""
