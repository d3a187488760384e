"""Pull requests that found nothing and wait for a message, for their deadline, or for the end.

    hold        ->  waiting by topic and queue
    arrived     ->  those that the message can satisfy become ready
    take_*      ->  hands them out; what is handed out is no longer held
    park        ->  one that is ready waits until its owner can take an answer, or is gone

Messages of one loop turn wake a pull once. Compatible with RocketMQ's PullRequestHoldService, but
deadlines are kept to DEADLINE_STEP_MS instead of 5 s, and a closed connection is forgotten at once.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

#: pullThreadPoolQueueCapacity of RocketMQ: more requests than this are not held but answered.
HELD_PULLS_MAX = 100_000
#: Nobody waits longer, whatever a client asks for.
SUSPEND_MS_MAX = 120_000
DEADLINE_STEP_MS = 250

Q = TypeVar("Q")


@dataclass(slots=True, eq=False)
class HeldPull(Generic[Q]):
    """One waiting request: what it waits for, and what the shell needs to answer it."""

    owner: Hashable
    topic: str
    queue_id: int
    #: The first offset that satisfies it.
    offset: int
    #: Filter on the tags code of a message; None takes all.
    accept: Callable[[int], bool] | None
    deadline_ms: int
    question: Q

    @property
    def _step(self) -> int:
        return -(-self.deadline_ms // DEADLINE_STEP_MS)


class HeldPulls(Generic[Q]):
    """All waiting pull requests of a broker, bounded by `capacity`."""

    def __init__(self, capacity: int = HELD_PULLS_MAX) -> None:
        self._capacity = capacity
        self._count = 0
        # Dicts are used as sets that keep their order, so that the first to come is served first.
        self._by_queue: dict[str, dict[int, dict[HeldPull[Q], None]]] = {}
        #: The topics of which `arrived` wants to hear.
        self.topics: Collection[str] = self._by_queue
        self._by_step: dict[int, dict[HeldPull[Q], None]] = {}
        self._by_owner: dict[Hashable, dict[HeldPull[Q], None]] = {}
        self._ready: deque[HeldPull[Q]] = deque()
        self._parked: dict[Hashable, list[HeldPull[Q]]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def has_ready(self) -> bool:
        """True when `take_ready` would return something."""
        return bool(self._ready)

    def hold(self, pull: HeldPull[Q]) -> bool:
        """Keep a request waiting; False when there is no room."""
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
        """Note that messages became readable: those from `first` on, before `end`.

        `codes` returns their tags codes. Called in every turn of the loop, so it does little.
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
        """Hand out those that a message has woken, the first to wake first."""
        count = len(self._ready) if count_max is None else min(count_max, len(self._ready))
        return [self._ready.popleft() for _ in range(count)]

    def park(self, pull: HeldPull[Q]) -> None:
        """Keep one that was handed out until its owner has read what it was sent before."""
        self._parked.setdefault(pull.owner, []).append(pull)

    def unpark(self, owner: Hashable) -> None:
        """Let what waits for its owner be handed out again."""
        self._ready += self._parked.pop(owner, ())

    def take_expired(self, now_ms: int) -> list[HeldPull[Q]]:
        """Hand out those whose deadline has passed."""
        due = [step for step in self._by_step if step * DEADLINE_STEP_MS <= now_ms]
        return self._take([pull for step in sorted(due) for pull in self._by_step[step]])

    def take_all(self) -> list[HeldPull[Q]]:
        """Hand out everything, because the broker stops."""
        waiting = [pull for pulls in self._by_owner.values() for pull in pulls]
        for owner in list(self._parked):
            self.unpark(owner)
        return self.take_ready() + self._take(waiting)

    def drop_owner(self, owner: Hashable) -> None:
        """Forget the requests of a connection that is gone."""
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
