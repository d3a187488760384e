"""Counts of the messages pulled by the console, by broker.

Brokers of Apache RocketMQ count the pulls of tools as consumption. The console subtracts its own
pulls from the totals and rates; pulls of other tools and of earlier console processes stay.
"""

from collections import deque
from dataclasses import dataclass, field

#: The longest span of a broker's rates, milliseconds.
KEPT_MS = 600_000
STEP_MS = 1_000


@dataclass(slots=True)
class _Reads:
    total: int = 0
    #: [second, messages], oldest first.
    recent: deque[list[int]] = field(default_factory=deque)
    #: Name of a mark -> its value, and the total when the value changed.
    marks: dict[str, tuple[str, int]] = field(default_factory=dict)


class OwnReads:
    """Counts of pulled messages by broker address. Event loop of the gateway only."""

    def __init__(self) -> None:
        self._of: dict[str, _Reads] = {}

    def add(self, addr: str, count: int, now_ms: int) -> None:
        """Count messages of one pull."""
        if not count:
            return
        reads = self._of.setdefault(addr, _Reads())
        reads.total += count
        step = now_ms // STEP_MS
        if reads.recent and reads.recent[-1][0] == step:
            reads.recent[-1][1] += count
        else:
            reads.recent.append([step, count])
        while reads.recent[0][0] < (now_ms - KEPT_MS) // STEP_MS:
            reads.recent.popleft()

    def since(self, addr: str, mark: str, value: str) -> int:
        """Return the messages since the last change of a mark, such as the time of the start."""
        reads = self._of.get(addr)
        if reads is None:
            return 0
        known = reads.marks.get(mark)
        if known is None or known[0] != value:
            # Without an earlier value, all pulls count: the broker ran meanwhile.
            known = reads.marks[mark] = value, reads.total if known else 0
        return reads.total - known[1]

    def rate(self, addr: str, span_s: int, now_ms: int) -> float:
        """Return the average of the last seconds, messages per second."""
        reads = self._of.get(addr)
        if reads is None:
            return 0.0
        first = now_ms // STEP_MS - span_s
        return sum(count for step, count in reads.recent if step > first) / span_s
