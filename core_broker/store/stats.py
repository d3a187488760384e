"""Statistics of the store: totals, and rates over ten seconds, one and ten minutes.

Compatible with RocketMQ's StoreStatsService, whose statistics `mqadmin brokerStatus` shows.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from core_broker.store.put_times import PutTimes

SAMPLE_INTERVAL_MS = 1000
WINDOWS_S = (10, 60, 600)

#: Rates per second over the three windows.
Rates = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class StoreStats:
    """A snapshot of the statistics."""

    put_times_total: int
    put_size_total: int
    put_failed_times: int
    put_entire_time_max_ms: int
    #: Put time, ms, that 99 % and 99.9 % of the messages of the last minute did not exceed.
    put_p99_ms: float | None
    put_p999_ms: float | None
    #: Messages of the last minute by RocketMQ's classes of put times.
    put_distribution: dict[str, int]
    get_found_times: int
    get_missed_times: int
    get_transferred_messages: int
    put_tps: Rates
    get_found_tps: Rates
    get_missed_tps: Rates
    get_transferred_tps: Rates
    commit_log_min_offset: int
    commit_log_max_offset: int
    flushed_offset: int
    flush_times: int
    flush_waiters: int
    commit_log_disk_ratio: float
    consume_queue_disk_ratio: float
    earliest_message_timestamp: int
    write_time_ms: int
    #: Since the start: damaged file offsets that remain, and queue units rebuilt from the log.
    damaged_places: int = 0
    repaired_units: int = 0
    #: Number of pending cold reads.
    waiting_reads: int = 0

    @property
    def to_flush_bytes(self) -> int:
        """Size of the unflushed part of the log, bytes."""
        return self.commit_log_max_offset - self.flushed_offset

    @property
    def put_average_size(self) -> float:
        """Mean size of a stored record in bytes."""
        return self.put_size_total / self.put_times_total if self.put_times_total else 0.0


@dataclass(slots=True)
class Counters:
    """Totals since the start."""

    put_times: int = 0
    put_bytes: int = 0
    put_failed: int = 0
    get_found: int = 0
    get_missed: int = 0
    get_messages: int = 0


class RateMeter:
    """Samples the totals once a second and computes rates from the samples."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.put_times = PutTimes()
        #: Called before each read of the counters, to add counts of the fast path.
        self.suppliers: list[Callable[[Counters], None]] = []
        self._samples: deque[tuple[int, int, int, int, int]] = deque(maxlen=WINDOWS_S[-1] + 1)

    @property
    def counters(self) -> Counters:
        """The current totals."""
        for supply in self.suppliers:
            supply(self._counters)
        return self._counters

    def tick(self, now_ms: int) -> None:
        """Take a sample when one is due; `now_ms` is the monotonic clock."""
        self.put_times.tick(now_ms)
        if self._samples and now_ms - self._samples[-1][0] < SAMPLE_INTERVAL_MS:
            return
        now = self.counters
        self._samples.append(
            (now_ms, now.put_times, now.get_found, now.get_missed, now.get_messages)
        )

    def rates(self) -> tuple[Rates, Rates, Rates, Rates]:
        """Return the rates of puts, found reads, missed reads and messages read."""
        put, found, missed, messages = (
            tuple(self._rate(column, window) for window in WINDOWS_S) for column in range(1, 5)
        )
        return put, found, missed, messages  # type: ignore[return-value]

    def _rate(self, column: int, window_s: int) -> float:
        samples = self._samples
        if len(samples) < 2:
            return 0.0
        last = samples[-1]
        first = samples[max(0, len(samples) - 1 - window_s)]
        return (last[column] - first[column]) * 1000 / (last[0] - first[0])
