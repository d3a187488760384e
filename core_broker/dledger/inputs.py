"""Inputs of a member: one at a time; the next ones wait while effects of one wait for the disk."""

from collections import deque
from collections.abc import Callable

#: Waiting inputs, and bytes of the frames of waiting requests. Further requests and ticks are
#: dropped: peers repeat requests without an answer. Answers are taken in any case, as nothing
#: repeats them: their number is that of the requests of this member that had no answer yet.
INPUTS_MAX = 4096
INPUTS_BYTES_MAX = 64 * 1024 * 1024

Step = Callable[[], None]


class Inputs:
    """The queue in front of a member. Event loop only."""

    def __init__(self, take: Callable[[Step], None]) -> None:
        """Prepare; `take` executes a step."""
        #: Inputs that a full queue dropped.
        self.dropped = 0
        self._take = take
        self._is_held = False
        self._waiting: deque[tuple[Step, int]] = deque()
        self._bytes = 0

    def put(self, step: Step, size: int = 0) -> None:
        """Take an input now, or after `resume`; `size` is that of the request's frame, bytes."""
        is_full = len(self._waiting) >= INPUTS_MAX or self._bytes + size > INPUTS_BYTES_MAX
        if self._is_held and is_full:
            self.dropped += 1
        else:
            self._put(step, size)

    def put_answer(self, step: Step) -> None:
        """Take the outcome of an own request, now or after `resume`."""
        self._put(step, 0)

    def _put(self, step: Step, size: int) -> None:
        if not self._is_held:
            self._take(step)
        else:
            self._waiting.append((step, size))
            self._bytes += size

    def hold(self) -> None:
        """Let inputs wait."""
        self._is_held = True

    def resume(self) -> None:
        """Take the inputs that waited, up to one that lets the next ones wait."""
        self._is_held = False
        while self._waiting and not self._is_held:
            step, size = self._waiting.popleft()
            self._bytes -= size
            self._take(step)

    def clear(self) -> None:
        """Drop the inputs that wait."""
        self._waiting.clear()
        self._bytes = 0
