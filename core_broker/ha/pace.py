"""Rate of a replication connection: bytes of the last second, and the budget of the current one.

Compatible with RocketMQ's FlowMonitor. Pure.
"""

#: Length of a window, ms.
WINDOW_MS = 1_000


class Pace:
    """Counts bytes in windows of one second."""

    __slots__ = ("_last", "_sent", "_window")

    def __init__(self) -> None:
        self._window = 0
        self._sent = 0
        self._last = 0

    def sent(self, size: int, now_ms: int) -> None:
        """Count bytes."""
        self._turn(now_ms)
        self._sent += size

    def last_second_bytes(self, now_ms: int) -> int:
        """Return the bytes of the last complete window."""
        self._turn(now_ms)
        return self._last

    def budget(self, limit: int, now_ms: int) -> int:
        """Return the bytes left of `limit` in the current window."""
        self._turn(now_ms)
        return max(limit - self._sent, 0)

    def _turn(self, now_ms: int) -> None:
        window = now_ms // WINDOW_MS
        if window != self._window:
            self._last = self._sent if window == self._window + 1 else 0
            self._window, self._sent = window, 0
