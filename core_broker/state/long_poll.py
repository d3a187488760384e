"""Long polling: held pull requests wait for a message, for their deadline, or for a shutdown.

    hold        ->  the pull waits in its topic and queue
    arrived     ->  pulls that the new messages can satisfy become ready
    take_*      ->  returns pulls and releases them
    park        ->  a ready pull waits until its connection accepts an answer or is closed

The messages of one event-loop iteration wake a pull once. Compatible with RocketMQ's
PullRequestHoldService, but deadlines are exact to DEADLINE_STEP_MS instead of 5 s, and the pulls of
a closed connection are dropped at once.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

#: Maximum held pulls: RocketMQ's pullThreadPoolQueueCapacity. Further pulls are answered at once.
HELD_PULLS_MAX = 100_000
#: Maximum hold time, ms, whatever the request allows.
SUSPEND_MS_MAX = 120_000
#: Resolution of deadlines, ms.
DEADLINE_STEP_MS = 250

Q = TypeVar("Q")


@dataclass(slots=True, eq=False)
class HeldPull(Generic[Q]):
    """One held pull: the conditions of its release, and `query`, the data for its answer."""

    owner: Hashable
    topic: str
    queue_id: int
    #: The first offset that satisfies the pull.
    offset: int
    #: Filter on the tags code of a message; None accepts all.
    accept: Callable[[int], bool] | None
    deadline_ms: int
    query: Q

    @property
    def _step(self) -> int:
        return -(-self.deadline_ms // DEADLINE_STEP_MS)


class HeldPulls(Generic[Q]):
    """All held pulls of a broker, at most `capacity`."""

    def __init__(self, capacity: int = HELD_PULLS_MAX) -> None:
        self._capacity = capacity
        self._count = 0
        # Dicts serve as ordered sets, so that pulls are answered in order of arrival.
        self._by_queue: dict[str, dict[int, dict[HeldPull[Q], None]]] = {}
        #: Topics for which the store must call `arrived`.
        self.topics: Collection[str] = self._by_queue
        self._by_step: dict[int, dict[HeldPull[Q], None]] = {}
        self._by_owner: dict[Hashable, dict[HeldPull[Q], None]] = {}
        self._ready: deque[HeldPull[Q]] = deque()
        self._parked: dict[Hashable, list[HeldPull[Q]]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def has_ready(self) -> bool:
        """True when `take_ready` would return a pull."""
        return bool(self._ready)

    def hold(self, pull: HeldPull[Q]) -> bool:
        """Hold a pull; False when the capacity is used up."""
        if self._count >= self._capacity:
            return False
        self._by_queue.setdefault(pull.topic, {}).setdefault(pull.queue_id, {})[pull] = None
        self._by_step.setdefault(pull._step, {})[pull] = None
        self._by_owner.setdefault(pull.owner, {})[pull] = None
        self._count += 1
        return True

    def arrived(
        self, topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        """Make pulls ready for the messages from offset `first` to before `end`.

        `codes` returns the tags codes of the messages. The call must be cheap, because the store
        makes it in every event-loop iteration.
        """
        queues = self._by_queue.get(topic)
        if queues is None:
            return
        waiting = queues.get(queue_id)
        if waiting is None:
            return
        woken = [
            pull
            for pull in waiting
            if end > pull.offset
            and (
                pull.accept is None or any(map(pull.accept, codes()[max(pull.offset - first, 0) :]))
            )
        ]
        for pull in woken:
            self._release(pull)
        self._ready += woken

    def take_ready(self, count_max: int | None = None) -> list[HeldPull[Q]]:
        """Take pulls woken by messages, in order of their wake-up."""
        count = len(self._ready) if count_max is None else min(count_max, len(self._ready))
        return [self._ready.popleft() for _ in range(count)]

    def park(self, pull: HeldPull[Q]) -> None:
        """Park a taken pull until its owner has read earlier answers."""
        self._parked.setdefault(pull.owner, []).append(pull)

    def unpark(self, owner: Hashable) -> None:
        """Make the parked pulls of an owner ready again."""
        self._ready += self._parked.pop(owner, ())

    def take_expired(self, now_ms: int) -> list[HeldPull[Q]]:
        """Take pulls whose deadline has passed."""
        due = [step for step in self._by_step if step * DEADLINE_STEP_MS <= now_ms]
        return self._take([pull for step in sorted(due) for pull in self._by_step[step]])

    def take_all(self) -> list[HeldPull[Q]]:
        """Take all pulls, because the broker stops."""
        waiting = [pull for pulls in self._by_owner.values() for pull in pulls]
        for owner in list(self._parked):
            self.unpark(owner)
        return self.take_ready() + self._take(waiting)

    def drop_owner(self, owner: Hashable) -> None:
        """Drop the pulls of a closed connection."""
        self._take(list(self._by_owner.get(owner, ())))
        self._parked.pop(owner, None)
        self._ready = deque(pull for pull in self._ready if pull.owner != owner)

    def _take(self, pulls: list[HeldPull[Q]]) -> list[HeldPull[Q]]:
        for pull in pulls:
            self._release(pull)
        return pulls

    def _release(self, pull: HeldPull[Q]) -> None:
        queues = self._by_queue[pull.topic]
        _discard(queues, pull.queue_id, pull)
        if not queues:
            del self._by_queue[pull.topic]
        _discard(self._by_step, pull._step, pull)
        _discard(self._by_owner, pull.owner, pull)
        self._count -= 1


def _discard(
    table: "dict[Hashable, dict[HeldPull[Q], None]] | dict[int, dict[HeldPull[Q], None]]",
    key: Hashable,
    pull: HeldPull[Q],
) -> None:
    pulls = table[key]  # type: ignore[index]
    del pulls[pull]
    if not pulls:
        del table[key]  # type: ignore[arg-type]
