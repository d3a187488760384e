# cython: annotation_typing=False
"""The end of a consume queue: the units in memory, and the queue's offsets.

The file is used twice: as plain Python, and compiled as core_broker.kernel.queue_tail with C types
from the .pxd file, since every write to the log extends and publishes the queues of its messages.
consume_queue.py has the files of a queue, consume_queues.py all queues. Event loop only.
"""

from collections.abc import Collection
from typing import Any, TypeVar

from core_broker.store.unit_layout import UNIT, UNIT_BYTES

_Tail = TypeVar("_Tail", bound="QueueTail")
_pack = UNIT.pack


class QueueTail:
    """Units and offsets of one queue.

    min_offset ≤ max_offset ≤ end_offset ≤ next_offset are logical offsets: of the first unit whose
    message is in the log, of the end for readers, of the end of the units, and of the next message.
    """

    __slots__ = (
        "_appended_end",
        "_tail",
        "_tail_from",
        "end_offset",
        "end_physical",
        "max_offset",
        "min_offset",
        "next_offset",
        "topic",
    )

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.min_offset = 0
        self.max_offset = 0
        self.end_offset = 0
        self.next_offset = 0
        #: Physical end of the newest message of the queue.
        self.end_physical = 0
        self._appended_end = 0
        self._tail = bytearray()
        self._tail_from = 0

    def append(self, offset_physical: int, size: int, tags_code: int) -> None:
        """Add the unit of the next message; `publish` makes the unit visible."""
        self._tail += _pack(offset_physical, size, tags_code)
        self._appended_end = offset_physical + size
        self.next_offset += 1

    def append_units(self, units: bytes | bytearray | memoryview, end_physical: int) -> None:
        """Add encoded units; the message of the last unit ends at `end_physical`."""
        self._tail += units
        self._appended_end = end_physical
        self.next_offset += len(units) // UNIT_BYTES

    def keep(self) -> int:
        """Keep the appended units; return the size of the units in memory, bytes.

        The owner of the units advances `max_offset` later (visibility.py).
        """
        self.end_offset = self.next_offset
        self.end_physical = self._appended_end
        return len(self._tail)

    def publish(self) -> int:
        """Keep the appended units, and show the units to readers; returns as `keep` does."""
        self.max_offset = self.next_offset
        return self.keep()

    def rollback(self) -> None:
        """Discard the units appended since the last `keep`."""
        del self._tail[(self.end_offset - self._tail_from) * UNIT_BYTES :]
        self.next_offset = self.end_offset


def publish_all(
    appended: set[_Tail],
    unwritten: dict[_Tail, None],
    full: set[_Tail],
    tail_bytes_max: int,
    listeners: list[tuple[Collection[str], Any]],
) -> list[tuple[Any, _Tail, int]]:
    """Publish the queues of `appended`, and enter the queues in `unwritten`.

    Queues with at least `tail_bytes_max` of units in memory also go into `full`. A listener is a
    collection of topics and an object of the caller. For each listener of a queue's topic the
    result has the object, the queue, and the first offset that became visible.
    """
    heard: list[tuple[Any, _Tail, int]] = []
    for tail in appended:
        first = tail.max_offset
        if tail.publish() >= tail_bytes_max:
            full.add(tail)
        unwritten[tail] = None
        for topics, listener in listeners:
            if tail.topic in topics:
                heard.append((listener, tail, first))
    return heard
