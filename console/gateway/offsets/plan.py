"""The plan of an offset reset, queue by queue. Pure; `reset.py` makes and executes plans."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.changes import ETAG_CHARS
from console.gateway.engine.session import BrokerRef

#: A queue of the topic: broker name and queue id.
Key = tuple[str, int]


class ResetTarget(StrEnum):
    """The kind of target of an offset reset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    EXACT = "exact"
    SHIFT = "shift"
    COPY = "copy"
    #: A separate offset for each named queue.
    EACH = "each"


class ResetMethod(StrEnum):
    CODE = "code"
    SERVER = "server"
    TIME = "time"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """The parameters of an offset reset. Without `queues`, all queues of the topic."""

    topic: str
    goal: ResetTarget
    time_ms: int | None = None
    offset: int | None = None
    by: int | None = None
    group: str = ""
    queues: tuple[Key, ...] = ()
    each: tuple[tuple[Key, int], ...] = ()


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a group in one queue with messages in [begin, end). `offset` is None before
    the first commit."""

    broker: BrokerRef
    queue_id: int
    begin: int
    end: int
    offset: int | None

    @property
    def key(self) -> Key:
        return self.broker.name, self.queue_id

    @property
    def lag(self) -> int | None:
        return None if self.offset is None else max(0, self.end - self.offset)


@dataclass(frozen=True, slots=True)
class QueueMove:
    """A queue of a plan; `new` is None without a change. `skipped` and `again` count the messages
    between old and new offset; None means unknown."""

    position: QueuePosition
    new: int | None
    #: The target offset was outside the stored messages.
    is_limited: bool = False

    @property
    def skipped(self) -> int | None:
        return self._between(forward=True)

    @property
    def again(self) -> int | None:
        return self._between(forward=False)

    def _between(self, *, forward: bool) -> int | None:
        old, begin = self.position.offset, self.position.begin
        if self.new is None:
            return 0
        if old is None:
            return None
        low, high = max(min(old, self.new), begin), max(old, self.new)
        is_forward = self.new > old
        return max(0, high - low) if is_forward == forward else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a reset. `etag` is a digest of the current offsets."""

    group: str
    topic: str
    moves: tuple[QueueMove, ...]
    online: tuple[str, ...]
    methods: tuple[tuple[BrokerRef, ResetMethod], ...]
    etag: str

    @property
    def changes(self) -> tuple[QueueMove, ...]:
        return tuple(each for each in self.moves if each.new is not None)

    @property
    def skipped(self) -> int | None:
        return total_of(each.skipped for each in self.moves)

    @property
    def again(self) -> int | None:
        return total_of(each.again for each in self.moves)


def etag_of(held: Iterable[QueuePosition]) -> str:
    """Return a digest of a group's offsets in a topic."""
    state = [[*each.key, each.offset] for each in held]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:ETAG_CHARS]


def total_of(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(each or 0 for each in known)
