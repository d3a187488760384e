"""Answers to questions: the value, its age, and the brokers that failed."""

import time
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from core_broker.errors import GantryError, TransportError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: unreachable: no answer arrived. refused: the broker answered with an error, or with a response
#: that the console cannot read.
FailureKind = Literal["unreachable", "refused"]


def now_ms() -> int:
    """Return the wall-clock time in milliseconds since the epoch, the console's only clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class BrokerFailure:
    """A broker or name server whose part of an answer is missing.

    `as_of_ms` is the time of the broker's last values, which take the place of the missing part;
    None: the value lacks the part.
    """

    broker: str
    addr: str
    reason: str
    as_of_ms: int | None = None
    kind: FailureKind = "unreachable"


@dataclass(frozen=True, slots=True)
class Partial(Generic[T_co]):
    """The result of a question function: a value without the parts of the failed brokers."""

    value: T_co
    failures: tuple[BrokerFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """The caller's answer. `asked_at_ms` is the time of the request, not of the cache read."""

    value: T_co
    failures: tuple[BrokerFailure, ...]
    asked_at_ms: int

    @property
    def partial(self) -> bool:
        return bool(self.failures)

    @property
    def age_ms(self) -> int:
        return max(0, now_ms() - self.asked_at_ms)


def kind_of(error: GantryError) -> FailureKind:
    """The kind of a failed request."""
    return "unreachable" if isinstance(error, TransportError) else "refused"


def merge_failures(*groups: tuple[BrokerFailure, ...]) -> tuple[BrokerFailure, ...]:
    """Join the failures of several questions in order, each broker and reason once.

    Of several times, the oldest remains.
    """
    merged: dict[tuple[str, str, str, str], BrokerFailure] = {}
    for failure in (failure for group in groups for failure in group):
        key = failure.broker, failure.addr, failure.reason, failure.kind
        times = [one.as_of_ms for one in (failure, merged.get(key)) if one is not None]
        known = [at_ms for at_ms in times if at_ms is not None]
        merged[key] = replace(failure, as_of_ms=min(known, default=None))
    return tuple(merged.values())
