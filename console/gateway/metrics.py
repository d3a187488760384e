"""Metrics of topics and of groups: in bulk from Gantry brokers, by name from other brokers.

A Gantry broker reports the metrics of all topics or groups in one answer. Other brokers report a
single topic or group per request, so a list requests the metrics of the rows on the page. To sort a
list by a metric, the console requests the metrics of the first SCAN_MAX rows, and the page shows
the number of rows left out.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from console.gateway.engine.answers import Answer, BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import Question
from console.gateway.engine.session import ClusterSession

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
N = TypeVar("N", int, float)

#: Maximum number of topics or groups for which a list requests metrics.
SCAN_MAX = 300
#: Deadline for the metrics of a page, milliseconds: up to 500 rows with several requests each.
METRICS_DEADLINE_MS = 12_000


# Without slots: a frozen generic with slots cannot be made in Python 3.11.
@dataclass(frozen=True)
class BulkMetrics(Generic[T_co]):
    """Metrics by topic or group name, and the time of the oldest broker inventory among them."""

    by_name: Mapping[str, T_co]
    taken_ms: int | None

    def measured_ms(self, name: str) -> int | None:
        """Return the time of an item's metrics; None for an item without bulk metrics."""
        return self.taken_ms if name in self.by_name else None


async def ask_each(
    session: ClusterSession, question: Question[[str], T], names: Sequence[str]
) -> Partial[Mapping[str, T]]:
    """Ask one question for each name. Names whose question fails are left out of the result."""
    answers: Iterable[Any] = await asyncio.gather(
        *(session.ask(question, name) for name in names), return_exceptions=True
    )
    values: dict[str, T] = {}
    failures: list[tuple[BrokerFailure, ...]] = []
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, Answer):
            values[name] = answer.value
            failures.append(answer.failures)
        elif isinstance(answer, GatewayError):
            failures.append(answer.failures)
        else:
            raise answer
    return Partial(values, merge_failures(*failures))


def sum_known(values: Iterable[N | None]) -> N | None:
    """Return the sum of the known values; None when no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
