"""Consumer statistics by topic, for code 307. Pure: the caller passes the time.

Compatible in meaning with RocketMQ's ConsumerStatsManager: rates over the last minute, failures
also over the last hour.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from core_broker.remoting.bodies import ConsumeStatus

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
SLOT_MS: Final = 1000


@dataclass(slots=True)
class Window:
    """Counts and durations over a sliding time span, in slots of 1 s."""

    span_ms: int
    _slots: deque[list[int]] = field(default_factory=deque)

    def add(self, now_ms: int, count: int, elapsed_ms: int = 0) -> None:
        slot = now_ms // SLOT_MS
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append([slot, 0, 0, 0])
        last = self._slots[-1]
        last[1] += count
        last[2] += elapsed_ms
        last[3] += 1
        self._forget(now_ms)

    def totals(self, now_ms: int) -> tuple[int, int, int]:
        """Sums over the span: count, duration in ms, calls."""
        self._forget(now_ms)
        return (
            sum(slot[1] for slot in self._slots),
            sum(slot[2] for slot in self._slots),
            sum(slot[3] for slot in self._slots),
        )

    def per_second(self, now_ms: int) -> float:
        return self.totals(now_ms)[0] * 1000 / self.span_ms

    def mean_ms(self, now_ms: int) -> float:
        _, elapsed_ms, calls = self.totals(now_ms)
        return elapsed_ms / calls if calls else 0.0

    def _forget(self, now_ms: int) -> None:
        oldest = (now_ms - self.span_ms) // SLOT_MS
        while self._slots and self._slots[0][0] <= oldest:
            self._slots.popleft()


class ConsumerStats:
    """Statistics of one topic."""

    def __init__(self) -> None:
        self._pulled = Window(MINUTE_MS)
        self._consumed = Window(MINUTE_MS)
        self._failed = Window(MINUTE_MS)
        self._elapsed = Window(MINUTE_MS)
        self._failed_of_hour = Window(HOUR_MS)

    def pulled(self, now_ms: int, count: int, elapsed_ms: int) -> None:
        self._pulled.add(now_ms, count, elapsed_ms)

    def consumed(self, now_ms: int, count: int, elapsed_ms: int, *, success: bool) -> None:
        self._elapsed.add(now_ms, count, elapsed_ms)
        if success:
            self._consumed.add(now_ms, count)
        else:
            self._failed.add(now_ms, count)
            self._failed_of_hour.add(now_ms, count)

    def status(self, now_ms: int) -> ConsumeStatus:
        return ConsumeStatus(
            pull_rt=self._pulled.mean_ms(now_ms),
            pull_tps=self._pulled.per_second(now_ms),
            consume_rt=self._elapsed.mean_ms(now_ms),
            consume_ok_tps=self._consumed.per_second(now_ms),
            consume_failed_tps=self._failed.per_second(now_ms),
            consume_failed_msgs=self._failed_of_hour.totals(now_ms)[0],
        )
