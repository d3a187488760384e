"""What the numbers of topics and of groups share: known for all at once, or asked for some.

Brokers of Gantry tell the numbers of everything in one answer. For what lies on other brokers each
topic and group is asked about, so a list does that for the rows it shows. To put such a list in the
order of a number the first SCAN_MAX rows are asked about; the page says how many were left out.
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

SCAN_MAX = 300
#: A page has 50 rows and the API gives up to 500; each may take several requests.
NUMBERS_DEADLINE_MS = 12_000


# Without slots: a frozen generic with slots cannot be made in Python 3.11.
@dataclass(frozen=True)
class Known(Generic[T_co]):
    """The numbers of all that could be told of at once, and when the oldest of them were taken."""

    by_name: Mapping[str, T_co]
    taken_ms: int | None


async def ask_each(
    session: ClusterSession, question: Question[[str], T], names: Sequence[str]
) -> Partial[Mapping[str, T]]:
    """Ask the same about each name; one that went, or that nobody can tell of, is left out."""
    answers: Iterable[Any] = await asyncio.gather(
        *(session.ask(question, name) for name in names), return_exceptions=True
    )
    found: dict[str, T] = {}
    failures: list[tuple[BrokerFailure, ...]] = []
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, Answer):
            found[name] = answer.value
            failures.append(answer.failures)
        elif isinstance(answer, GatewayError):
            failures.append(answer.failures)
        else:
            raise answer
    return Partial(found, merge_failures(*failures))


def added(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def counted(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
