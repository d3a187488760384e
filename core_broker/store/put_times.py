"""Put times: percentiles and distribution over the last finished minute.

A put lasts from the staging of a message until the commit log is written, and with SYNC_FLUSH or
SYNC_MASTER until disk or slaves have confirmed the message. All messages of one event-loop
iteration count with the time of the first. Compatible with RocketMQ's StoreStatsService
(putLatency99, putLatency999, putMessageDistributeTime), with finer buckets below 1 ms.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate

WINDOW_MS = 60_000
#: Widths of the buckets, µs, and the number of buckets of each width; from 1 ms on RocketMQ's.
_WIDTHS_US = (
    (10, 10), (50, 18), (1_000, 19), (2_000, 15), (5_000, 10), (10_000, 10),
    (50_000, 6), (100_000, 5), (1_000_000, 9),
)  # fmt: skip
#: Upper bounds of the buckets, µs. One more bucket has the longer times.
_BOUNDS_US = tuple(accumulate(width for width, count in _WIDTHS_US for _ in range(count)))
#: In the unit of `add`, as floats, because `add` runs once per event-loop iteration.
_BOUNDS_S = tuple(bound / 1_000_000 for bound in _BOUNDS_US)
#: RocketMQ's classes of whole ms with their upper bounds, µs; "<=0ms" is less than 1 ms.
_CLASSES = (
    ("<=0ms", 1_000), ("0~10ms", 10_000), ("10~50ms", 50_000), ("50~100ms", 100_000),
    ("100~200ms", 200_000), ("200~500ms", 500_000), ("500ms~1s", 1_000_000),
    ("1~2s", 2_000_000), ("2~3s", 3_000_000), ("3~4s", 4_000_000), ("4~5s", 5_000_000),
    ("5~10s", 10_000_000), ("10s~", None),
)  # fmt: skip
#: Buckets up to the end of each class.
_CLASS_ENDS = [
    len(_BOUNDS_US) + 1 if bound is None else bisect_left(_BOUNDS_US, bound) + 1
    for _, bound in _CLASSES
]


class PutTimes:
    """Counts messages by their put time. Event loop only."""

    def __init__(self) -> None:
        #: The longest put since the start, seconds.
        self.longest_s = 0.0
        self._counts = [0] * (len(_BOUNDS_US) + 1)
        self._last = self._counts.copy()
        self._since_ms: int | None = None

    def add(self, elapsed_s: float, messages: int) -> None:
        """Count messages with one put time."""
        self._counts[bisect_right(_BOUNDS_S, elapsed_s)] += messages
        if elapsed_s > self.longest_s:  # noqa: PLR1730 - max() is a call per iteration
            self.longest_s = elapsed_s

    def tick(self, now_ms: int) -> None:
        """Finish the minute when it is over; `now_ms` is the monotonic clock."""
        if self._since_ms is None:
            self._since_ms = now_ms
        elif now_ms - self._since_ms >= WINDOW_MS:
            self._since_ms = now_ms
            self._last, self._counts = self._counts, [0] * len(self._counts)

    def percentile_ms(self, share: float) -> float | None:
        """Return the time that a share of the messages does not exceed; None without messages.

        The value is interpolated inside its bucket. Times above the last bound have this bound.
        """
        total = sum(self._last)
        if not total:
            return None
        rank, lower = max(1.0, total * share), 0
        for bound, count in zip(_BOUNDS_US, self._last, strict=False):
            if rank <= count:
                return (lower + (bound - lower) * rank / count) / 1000
            rank -= count
            lower = bound
        return _BOUNDS_US[-1] / 1000

    def distribution(self) -> dict[str, int]:
        """Return the number of messages by RocketMQ's classes of times."""
        sums = [0, *accumulate(self._last)]
        starts = [0, *_CLASS_ENDS]
        return {
            name: sums[end] - sums[start]
            for (name, _), start, end in zip(_CLASSES, starts, _CLASS_ENDS, strict=False)
        }
