"""Reads of the compiled fast path: units and mapped log bytes, without waiting.

The store has two read interfaces: Reader.get, and this one. Reader.get serves all other reads:
cold, far behind, damaged or deleted data.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from core_broker.store.cold_reads import ColdRead
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.layout import StoreParts
from core_broker.store.reader import Reader
from core_broker.store.stats import RateMeter

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping


class FastReadLimits(NamedTuple):
    """Limits of one pull: messages, bytes, and scanned queue units."""

    count_max: int
    bytes_max: int
    scanned_max: int


class FastReads:
    """Reads that never wait for the disk. Event loop only."""

    def __init__(self, parts: StoreParts, reader: Reader, meter: RateMeter) -> None:
        #: Returns a queue that has, or once had, messages; None otherwise.
        self.queue: Callable[[str, int], ConsumeQueue | None] = parts.queues.get
        #: Returns a mapping of the log at an offset, valid for this event-loop iteration.
        self.mapping: Callable[[int], Mapping | None] = parts.log.mapping
        self._log = parts.log
        self._queues = parts.queues
        self._reader = reader
        #: Suppliers of the kernel's read counters.
        self.suppliers = meter.suppliers

    @property
    def queue_changes(self) -> int:
        """Number of removed queues and repaired units; a change makes cached units invalid."""
        return self._queues.removals + self._queues.repairs

    @property
    def range(self) -> tuple[int, int]:
        """Start and end of the log range that the compiled fast path may read."""
        log = self._log
        return max(log.min_offset, self._reader.in_memory_from), log.written

    def limits(self) -> FastReadLimits:
        """Limits of one pull; constant until the settings change."""
        (count, size), _ = self._reader.limits(2**31, None)
        return FastReadLimits(count, size, self._reader.scanned_max(None))

    def units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """Bytes of units from an offset on; empty when the units are not in memory."""
        try:
            return queue.read(offset, count)
        except ColdRead:
            return b""
