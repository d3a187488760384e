"""Messages a second over the last 10 s, 1 min and 10 min, from a counter read once a second.

Compatible with the values of RocketMQ's StoreStatsService: three numbers separated by blanks.
"""

from collections import deque

WINDOWS_S = (10, 60, 600)
SAMPLE_INTERVAL_MS = 1_000
_SAMPLES_MAX = WINDOWS_S[-1] + 1


class RateWindows:
    """Keeps the samples of one counter that only grows."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque(maxlen=_SAMPLES_MAX)

    def sample(self, now_ms: int, total: int) -> None:
        """Add a reading of the counter."""
        self._samples.append((now_ms, total))

    def per_second(self, seconds: int) -> float:
        """The mean over the last `seconds`, or over what there is when that is less."""
        if len(self._samples) < 2:
            return 0.0
        first_ms, first = self._samples[max(len(self._samples) - 1 - seconds, 0)]
        last_ms, last = self._samples[-1]
        return (last - first) * 1000 / (last_ms - first_ms) if last_ms > first_ms else 0.0

    def text(self) -> str:
        """The three means as a runtime-info value."""
        return " ".join(str(self.per_second(seconds)) for seconds in WINDOWS_S)
