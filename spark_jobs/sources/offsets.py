"""Queue ranges of a read: from the options and the queue bounds to partitions. Pure.

Offsets are `earliest`, `latest` or JSON by broker name and queue:

    {"broker-a": {"0": 100, "1": -2}, "broker-b": {"0": -1}}

with -2 for earliest and -1 for latest. An unnamed queue starts at its first message, or ends at its
last.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from core_broker.errors import ClientError

EARLIEST: Final = -2
LATEST: Final = -1

#: Broker name, queue: offset.
Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Bounds of one queue, from its broker: first offset, and next offset behind the last
    message.
    """

    broker_name: str
    queue_id: int
    offset_min: int
    offset_max: int


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The part of one queue to read: `start` up to and without `end`."""

    broker_name: str
    queue_id: int
    start: int
    end: int
    #: Requested messages that no longer exist: expired, or the queue was recreated.
    lost: int = 0

    @property
    def count(self) -> int:
        return self.end - self.start


def parse_offsets(option: str, text: str) -> Offsets | int:
    """The value of `startingOffsets` or `endingOffsets`: EARLIEST, LATEST, or offsets by queue."""
    words = {"earliest": EARLIEST, "latest": LATEST}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        offsets = msgspec.json.decode(text, type=dict[str, dict[int, int]])
    except msgspec.MsgspecError as error:
        raise ClientError(
            f"{option} must be earliest, latest or JSON like "
            f'{{"broker-a": {{"0": 100}}}}, not {text[:80]!r}: {error}'
        ) from error
    if any(offset < EARLIEST for queues in offsets.values() for offset in queues.values()):
        raise ClientError(f"{option} holds an offset below {EARLIEST}: {text[:80]!r}")
    return offsets


def ranges_to_read(
    bounds: Iterable[QueueBounds], starting: Offsets | int, ending: Offsets | int = LATEST
) -> list[QueueRange]:
    """The range of each queue within its bounds. Empty ranges stay in the list: they carry
    offsets.
    """
    return [_range(queue, starting, ending) for queue in bounds]


def slices(ranges: Iterable[QueueRange], rows_max: int) -> list[QueueRange]:
    """The ranges split into parts of about equal size, none longer than `rows_max`."""
    parts = []
    for whole in ranges:
        count = -(-whole.count // rows_max)
        for index in range(count):
            start = whole.start + whole.count * index // count
            end = whole.start + whole.count * (index + 1) // count
            parts.append(QueueRange(whole.broker_name, whole.queue_id, start, end))
    return parts


def limited(ranges: Iterable[QueueRange], rows_max: int) -> list[QueueRange]:
    """The ranges limited to about `rows_max` rows in all, in proportion to each queue's size."""
    whole_ranges = list(ranges)
    total = sum(part.count for part in whole_ranges)
    if total <= rows_max:
        return whole_ranges
    return [
        replace(part, end=part.start + -(-part.count * rows_max // total)) for part in whole_ranges
    ]


def next_offsets(ranges: Iterable[QueueRange]) -> dict[str, dict[int, int]]:
    """The next offsets after a read of `ranges`."""
    offsets: dict[str, dict[int, int]] = {}
    for done in ranges:
        offsets.setdefault(done.broker_name, {})[done.queue_id] = done.end
    return offsets


def _range(queue: QueueBounds, starting: Offsets | int, ending: Offsets | int) -> QueueRange:
    requested = _offset(queue, starting, EARLIEST)
    start = _absolute(queue, requested)
    end = min(_absolute(queue, _offset(queue, ending, LATEST)), queue.offset_max)
    lost = 0
    if start < queue.offset_min:
        lost, start = queue.offset_min - start, queue.offset_min
    elif start > queue.offset_max:
        # The queue was recreated: its present messages are unread.
        start = queue.offset_min
    return QueueRange(queue.broker_name, queue.queue_id, start, max(start, end), lost)


def _offset(queue: QueueBounds, offsets: Offsets | int, absent: int) -> int:
    if isinstance(offsets, int):
        return offsets
    return offsets.get(queue.broker_name, {}).get(queue.queue_id, absent)


def _absolute(queue: QueueBounds, offset: int) -> int:
    return {EARLIEST: queue.offset_min, LATEST: queue.offset_max}.get(offset, offset)
