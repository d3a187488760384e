"""Questions and commands: how an area asks a cluster, and how answers are shared.

    @question(fresh_for_ms=3_000)
    async def topic_rows(desk: Desk) -> Partial[tuple[TopicRow, ...]]: ...

    rows = cluster.ask(topic_rows)              # in a view: an Answer
    rows = await cluster.ask_async(topic_rows)  # in a WebSocket consumer
    inner = await desk.ask(other_question, arg) # inside another question

Whoever asks the same question (function and arguments) while it is under way waits for that one
answer, and for `fresh_for_ms` afterwards gets the kept answer with its age. A `costly` question,
which asks brokers about everything they have and which open pages repeat, is kept ten times as long
as it took, so that being watched costs a cluster no more than a tenth of its time. Whoever asks
within STALE_MAX_MS after that gets the kept answer once more, and the question goes out again
behind it: pages that are looked at do not wait for it. What goes into an answer is never stale.
Failures are kept for FAILURE_FRESH_MS, so that a dead broker is not asked by every viewer in turn.
Commands are never shared or kept; when one ends, kept answers of its cluster are dropped.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from console.gateway.engine.answers import Answer, Partial, now_ms
from console.gateway.engine.errors import GatewayError

if TYPE_CHECKING:
    from console.gateway.engine.session import Desk

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

FRESH_FOR_MS = 2_000
DEADLINE_MS = 6_000
COMMAND_DEADLINE_MS = 15_000
FAILURE_FRESH_MS = 1_000
COSTLY_FRESH_MAX_MS = 30_000
STALE_MAX_MS = 10_000
REST_PER_WORK = 10
ANSWERS_MAX = 4_096
SWEEP_EVERY_MS = 5_000
GATEWAY_PREFIX = "console.gateway."


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
    """A named question with its deadline and how long its answer stays fresh."""

    run: "Callable[Concatenate[Desk, P], Awaitable[Partial[T_co]]]"
    fresh_for_ms: int
    deadline_ms: int
    costly: bool

    @property
    def name(self) -> str:
        return name_of(self.run)


@dataclass(frozen=True, eq=False)
class Command(Generic[P, T_co]):
    """A named change with its deadline."""

    run: "Callable[Concatenate[Desk, P], Awaitable[T_co]]"
    deadline_ms: int

    @property
    def name(self) -> str:
        return name_of(self.run)


def question(
    *, fresh_for_ms: int = FRESH_FOR_MS, deadline_ms: int = DEADLINE_MS, costly: bool = False
) -> "Callable[[Callable[Concatenate[Desk, P], Awaitable[Partial[T]]]], Question[P, T]]":
    """Make an async function a question; its arguments must be hashable."""
    return lambda run: Question(run, fresh_for_ms, deadline_ms, costly)


def command(
    *, deadline_ms: int = COMMAND_DEADLINE_MS
) -> "Callable[[Callable[Concatenate[Desk, P], Awaitable[T]]], Command[P, T]]":
    """Make an async function a command."""
    return lambda run: Command(run, deadline_ms)


#: Whether somebody asks for the sake of another question.
_part_of_answer: ContextVar[bool] = ContextVar("part_of_answer", default=False)


@dataclass(slots=True)
class _Kept:
    outcome: Answer[Any] | GatewayError
    until_ms: int
    #: Until then it is given out once more while the question is asked again.
    stale_until_ms: int


class AnswerCache:
    """Answers of one cluster: shared while under way, kept while fresh, bounded by ANSWERS_MAX.

    Old answers are swept out every few seconds: a page of messages may be megabytes.
    Lives on the gateway's loop; not for use from other threads.
    """

    def __init__(
        self, clock_ms: Callable[[], int] = now_ms, answers_max: int = ANSWERS_MAX
    ) -> None:
        self._clock_ms = clock_ms
        self._answers_max = answers_max
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._asking: dict[Hashable, asyncio.Task[Answer[Any]]] = {}
        self._generation = 0
        self._sweep_at_ms = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    async def get(
        self,
        key: Hashable,
        fresh_for_ms: int,
        ask: Callable[[], Awaitable[Partial[T]]],
        *,
        costly: bool = False,
    ) -> Answer[T]:
        """The kept answer, the one under way, or a new one."""
        kept = self._kept.get(key)
        if kept is not None and self._clock_ms() < kept.until_ms:
            self.hits += 1
            self._kept.move_to_end(key)
            if isinstance(kept.outcome, GatewayError):
                raise kept.outcome
            return kept.outcome
        task = self._asking.get(key)
        if task is None:
            self.misses += 1
            asking = self._ask(key, fresh_for_ms, ask, costly, self._generation)
            task = asyncio.create_task(asking)
            self._asking[key] = task
            # Retrieved here as well, so that an answer nobody waits for any more is not reported.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        else:
            self.hits += 1
        if costly and kept is not None and not _part_of_answer.get():
            stale = kept.outcome
            if isinstance(stale, Answer) and self._clock_ms() < kept.stale_until_ms:
                return stale
        # Whoever stops waiting must not end the question for the others.
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Drop everything, and let answers that are still under way be used but not kept."""
        self._generation += 1
        self._kept.clear()
        self._asking.clear()

    async def _ask(
        self,
        key: Hashable,
        fresh_for_ms: int,
        ask: Callable[[], Awaitable[Partial[T]]],
        costly: bool,
        generation: int,
    ) -> Answer[T]:
        _part_of_answer.set(True)  # in the context of this question's own task
        asked_at_ms = self._clock_ms()
        try:
            partial = await ask()
        except GatewayError as failure:
            if generation == self._generation:
                self._keep(key, failure, min(FAILURE_FRESH_MS, fresh_for_ms))
            raise
        finally:
            if generation == self._generation:
                self._asking.pop(key, None)
        answer = Answer(partial.value, partial.failures, asked_at_ms)
        if generation == self._generation:
            took_ms = self._clock_ms() - asked_at_ms if costly else 0
            rest_ms = min(took_ms * REST_PER_WORK, COSTLY_FRESH_MAX_MS)
            stale_ms = STALE_MAX_MS if costly else 0
            self._keep(key, answer, max(fresh_for_ms, rest_ms), stale_ms)
        return answer

    def _keep(
        self,
        key: Hashable,
        outcome: Answer[Any] | GatewayError,
        fresh_ms: int,
        stale_ms: int = 0,
    ) -> None:
        if fresh_ms <= 0:
            return  # shared while it was under way, and no longer
        now = self._clock_ms()
        if now >= self._sweep_at_ms:
            self._sweep_at_ms = now + SWEEP_EVERY_MS
            for old in [each for each, kept in self._kept.items() if kept.stale_until_ms <= now]:
                del self._kept[old]
        self._kept[key] = _Kept(outcome, now + fresh_ms, now + fresh_ms + stale_ms)
        self._kept.move_to_end(key)
        while len(self._kept) > self._answers_max:
            self._kept.popitem(last=False)
