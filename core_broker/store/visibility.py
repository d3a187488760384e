"""Which messages readers see: all, or only those that other replicas have confirmed.

    write --hold--> bucket --seal--> held --confirm--> visible: max_offset of the queues

Under a controller a message may be in the log of its master only, and vanish when another broker is
elected. A consumer that has read it would skip the message that takes its offset. So a gated store
publishes the units of a write, and advances the end for readers once the confirm offset has passed
the write. An open gate holds nothing back. Compatible with RocketMQ's confirm offset, which delays
the dispatch of the log itself. Event loop only.
"""

import sys
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from core_broker.store.consume_queue import ConsumeQueue

#: Writes held apart; more of them are confirmed together.
BUCKETS_MAX = 4_096

#: Queues, each with the first and the end offset of the messages that became visible.
Shown = dict[ConsumeQueue, tuple[int, int]]


class _Bucket(NamedTuple):
    """The queues of one write, each with its end offset; all bytes end at `end_physical`."""

    end_physical: int
    ends: dict[ConsumeQueue, int]


class Visibility:
    """The gate in front of the readers of a store."""

    def __init__(self) -> None:
        #: All replicas have the bytes of the log before this offset; never decreases.
        self.confirmed = 0
        #: True while units become visible only by `confirm`.
        self.is_gated = False
        self._open: dict[ConsumeQueue, int] = {}
        self._held: deque[_Bucket] = deque()

    def restore(self, confirmed: int) -> None:
        """Begin with the confirm offset of the previous run, and an open gate."""
        self.confirmed = confirmed
        self.is_gated = False
        self._open = {}
        self._held.clear()

    @property
    def hidden_from(self) -> int:
        """All messages at or behind this offset of the log are hidden from readers."""
        return self.confirmed if self.is_gated else sys.maxsize

    def hides(self, end_physical: int) -> bool:
        """Return whether a message that ends at an offset of the log is hidden from readers."""
        return end_physical > self.hidden_from

    def hold(self, queue: ConsumeQueue) -> None:
        """Hold the published units of a queue back, until `seal` says where their bytes end."""
        self._open[queue] = queue.end_offset

    def seal(self, end_physical: int) -> None:
        """End a write: its units become visible when all bytes before an offset are confirmed."""
        if not self._open:
            return
        held = self._held
        if len(held) >= BUCKETS_MAX:
            newest = held.pop()
            self._open = newest.ends | self._open
        held.append(_Bucket(end_physical, self._open))
        self._open = {}

    def gate(self, queues: Iterable[ConsumeQueue], end_physical: int) -> None:
        """Hide all messages behind the confirm offset, also those that are visible now.

        `end_physical` is the end of the log. Reads the units of queues with such messages.
        """
        self.is_gated = True
        for queue in queues:
            if queue.end_physical > self.confirmed:
                low = min(queue.min_offset, queue.max_offset)
                shown = queue.first_not_before(self.confirmed, low, queue.max_offset)
                if shown < queue.end_offset:
                    self.hold(queue)
                    queue.max_offset = shown
        self.seal(end_physical)

    def open(self) -> Shown:
        """Hold nothing back any more; return what became visible."""
        self.is_gated = False
        return self._show(len(self._held))

    def confirm(self, offset: int) -> Shown:
        """Advance the confirm offset; return what became visible."""
        if offset <= self.confirmed:
            return {}
        self.confirmed = offset
        count = 0
        for bucket in self._held:
            if bucket.end_physical > offset:
                break
            count += 1
        return self._show(count)

    def _show(self, count: int) -> Shown:
        shown: Shown = {}
        for _ in range(count):
            for queue, held_end in self._held.popleft().ends.items():
                # A cut may have shortened the queue meanwhile.
                end = min(held_end, queue.end_offset)
                if end > queue.max_offset:
                    first, _ = shown.get(queue, (queue.max_offset, end))
                    shown[queue] = (first, end)
                    queue.max_offset = end
        return shown
