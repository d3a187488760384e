"""The rest of a time budget."""

import time


class Deadline:
    """A point in time shared by several steps: the sum of the steps stays within one budget."""

    __slots__ = ("_end", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._end = time.monotonic() + timeout_ms / 1000

    def left_ms(self) -> int:
        """Milliseconds left; 0 after the deadline."""
        return max(int((self._end - time.monotonic()) * 1000), 0)
