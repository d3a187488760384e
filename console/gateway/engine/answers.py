"""What comes back from a question: the value, its age, and which brokers could not take part."""

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def now_ms() -> int:
    """Milliseconds since the epoch: the console's one clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class BrokerFailure:
    """A broker that could not answer; what it would have added is missing from the value."""

    broker: str
    addr: str
    reason: str


@dataclass(frozen=True, slots=True)
class Partial(Generic[T_co]):
    """What a question function returns."""

    value: T_co
    failures: tuple[BrokerFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """What whoever asks gets. `asked_at_ms` is when the question went out, not when it was read."""

    value: T_co
    failures: tuple[BrokerFailure, ...]
    asked_at_ms: int

    @property
    def partial(self) -> bool:
        return bool(self.failures)

    @property
    def age_ms(self) -> int:
        return max(0, now_ms() - self.asked_at_ms)


def merge_failures(*groups: tuple[BrokerFailure, ...]) -> tuple[BrokerFailure, ...]:
    """Join failures of several questions, each broker and reason once, in order."""
    return tuple(dict.fromkeys(failure for group in groups for failure in group))
