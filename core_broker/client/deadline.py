"""How much of a time budget is left."""

import time


class Deadline:
    """A point in time that several steps share, so that their sum stays within one budget."""

    __slots__ = ("_end", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._end = time.monotonic() + timeout_ms / 1000

    def left_ms(self) -> int:
        """Milliseconds left; 0 when it has passed."""
        return max(int((self._end - time.monotonic()) * 1000), 0)
