"""Questions and commands: how code of a noun asks a cluster.

    @question(fresh_for_ms=3_000)
    async def topic_rows(session: ClusterSession) -> Partial[tuple[TopicRow, ...]]: ...

    rows = cluster.ask(topic_rows)                 # in a view: an Answer
    rows = await cluster.ask_async(topic_rows)     # in a WebSocket consumer
    inner = await session.ask(other_question, arg) # inside another question

A question reads. Questions with equal function and arguments share an answer; `cache.py` defines
for how long. A command changes the cluster. Results of commands are never shared or cached; the end
of a command invalidates the cached answers of the cluster.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from console.gateway.engine.answers import Partial

if TYPE_CHECKING:
    from console.gateway.engine.session import ClusterSession

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

GATEWAY_PREFIX = "console.gateway."
#: Default freshness of an answer, milliseconds.
FRESH_FOR_MS = 2_000
#: Default deadline of a question, milliseconds.
DEADLINE_MS = 6_000
#: Default deadline of a command, milliseconds.
COMMAND_DEADLINE_MS = 15_000


def name_of(run: Callable[..., Any]) -> str:
    """`messages.browse`: noun and function, as metrics and error texts name a question."""
    module = run.__module__
    if module.startswith(GATEWAY_PREFIX):
        noun = module.removeprefix(GATEWAY_PREFIX).partition(".")[0]
    else:
        noun = module.rpartition(".")[2]
    return f"{noun}.{run.__name__}"


@dataclass(frozen=True, eq=False)
class Question(Generic[P, T_co]):
    """A function that reads from a cluster, with deadline and freshness of the answer.

    A `costly` question requests all topics, groups or clients of the brokers. A question that
    returns messages has the parameter `mask`; `Cluster.ask` passes the mask of the reader.
    """

    run: "Callable[Concatenate[ClusterSession, P], Awaitable[Partial[T_co]]]"
    fresh_for_ms: int
    deadline_ms: int
    costly: bool
    takes_mask: bool = False

    @property
    def name(self) -> str:
        return name_of(self.run)


@dataclass(frozen=True, eq=False)
class Command(Generic[P, T_co]):
    """A function that changes a cluster, with a deadline.

    With `changes_cluster=False`, the function changes only the console.
    """

    run: "Callable[Concatenate[ClusterSession, P], Awaitable[T_co]]"
    deadline_ms: int
    changes_cluster: bool = True

    @property
    def name(self) -> str:
        return name_of(self.run)


def question(
    *, fresh_for_ms: int = FRESH_FOR_MS, deadline_ms: int = DEADLINE_MS, costly: bool = False
) -> "Callable[[Callable[Concatenate[ClusterSession, P], Awaitable[Partial[T]]]], Question[P, T]]":
    """Make an async function a question. Its arguments must be hashable."""

    def declare(run: "Callable[Concatenate[ClusterSession, P], Awaitable[Partial[T]]]") -> Any:
        takes_mask = "mask" in inspect.signature(run).parameters
        return Question(run, fresh_for_ms, deadline_ms, costly, takes_mask)

    return declare


def command(
    *, deadline_ms: int = COMMAND_DEADLINE_MS, changes_cluster: bool = True
) -> "Callable[[Callable[Concatenate[ClusterSession, P], Awaitable[T]]], Command[P, T]]":
    """Make an async function a command."""
    return lambda run: Command(run, deadline_ms, changes_cluster)
