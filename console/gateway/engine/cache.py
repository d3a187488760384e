"""The answer cache of one cluster: equal questions share a request and, for a while, the answer.

In flight    An equal question waits for the answer of the question in flight.
Fresh        For `fresh_for_ms` after the answer, equal questions get the cached answer with its
             age. A costly answer stays fresh for ten times the duration of the request, so that
             open pages use at most a tenth of the cluster's time.
Stale        For STALE_MAX_MS after that, a page gets the cached costly answer again while the
             question runs in the background. Nested questions get no stale answer.
Failures     Errors stay fresh for FAILURE_FRESH_MS, so that viewers do not wait for a dead broker
             in turn.
Misses       A name that the costly answers lack may be new: `drop_lists` drops them, at most every
             MISS_EVERY_MS, and not before MISS_PER_WORK times the duration of their requests.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from console.gateway.engine.answers import Answer, Partial, now_ms
from console.gateway.engine.errors import GatewayError, NotFound

T = TypeVar("T")

#: Freshness of a failure, milliseconds.
FAILURE_FRESH_MS = 1_000
#: Maximum freshness of a costly answer, milliseconds.
COSTLY_FRESH_MAX_MS = 30_000
#: Time after the freshness of a costly answer in which pages still get the answer, milliseconds.
STALE_MAX_MS = 10_000
#: Freshness of a costly answer as a multiple of the request's duration.
FRESH_PER_WORK = 10
#: Minimum time between two drops of the costly answers because of missing names, milliseconds.
MISS_EVERY_MS = 2_000
#: The same time as a multiple of the requests' duration: invented names cannot flood the brokers.
MISS_PER_WORK = 4
#: Maximum number of cached answers of one cluster.
ANSWERS_MAX = 4_096
#: Interval of the sweep that removes expired answers, milliseconds.
SWEEP_EVERY_MS = 5_000

#: True in the task of a question, where a nested question must not get a stale answer.
_inside_question: ContextVar[bool] = ContextVar("inside_question", default=False)


@dataclass(slots=True)
class _Entry:
    outcome: Answer[Any] | GatewayError
    fresh_until_ms: int
    #: End of the time in which a page gets the entry while the question runs again.
    stale_until_ms: int
    #: Duration of the request of a costly answer, milliseconds; None: another answer, or an error.
    costly_ms: int | None = None


class AnswerCache:
    """Answers of one cluster: shared in flight, cached while fresh, at most ANSWERS_MAX of them.

    A sweep removes expired answers, because one page of messages may take megabytes. The cache
    belongs to the gateway's event loop and is not thread-safe.
    """

    def __init__(
        self, clock_ms: Callable[[], int] = now_ms, answers_max: int = ANSWERS_MAX
    ) -> None:
        self._clock_ms = clock_ms
        self._answers_max = answers_max
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._in_flight: dict[Hashable, asyncio.Task[Answer[Any]]] = {}
        self._generation = 0
        self._sweep_at_ms = 0
        self._drop_from_ms = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def get(
        self,
        key: Hashable,
        fresh_for_ms: int,
        ask: Callable[[], Awaitable[Partial[T]]],
        *,
        costly: bool = False,
    ) -> Answer[T]:
        """Return the cached answer, the answer in flight, or a new one; raise a cached error."""
        entry = self._entries.get(key)
        if entry is not None and self._clock_ms() < entry.fresh_until_ms:
            self.hits += 1
            self._entries.move_to_end(key)
            if isinstance(entry.outcome, GatewayError):
                raise entry.outcome
            return entry.outcome
        task = self._in_flight.get(key)
        if task is None:
            self.misses += 1
            request = self._ask(key, fresh_for_ms, ask, costly, self._generation)
            task = asyncio.create_task(request)
            self._in_flight[key] = task
            # Retrieve the exception, which asyncio would otherwise log after the waiters' end.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        else:
            self.hits += 1
        if costly and entry is not None and not _inside_question.get():
            stale = entry.outcome
            if isinstance(stale, Answer) and self._clock_ms() < entry.stale_until_ms:
                return stale
        # A cancelled waiter must not cancel the request of the other waiters.
        return await asyncio.shield(task)

    def invalidate(self) -> None:
        """Drop all answers. Answers in flight still reach their waiters but are not cached."""
        self._generation += 1
        self._entries.clear()
        self._in_flight.clear()

    def drop_lists(self, before_ms: int) -> bool:
        """Drop the costly answers asked before a time, and the misses; return False when there is
        no such answer, or too soon after the last drop.
        """
        now = self._clock_ms()
        durations_ms = [
            entry.costly_ms
            for entry in self._entries.values()
            if entry.costly_ms is not None and _asked_before(entry, before_ms)
        ]
        if now < self._drop_from_ms or not durations_ms:
            return False
        self._drop_from_ms = now + max(MISS_EVERY_MS, MISS_PER_WORK * max(durations_ms))
        for key, entry in list(self._entries.items()):
            is_list = entry.costly_ms is not None and _asked_before(entry, before_ms)
            if is_list or isinstance(entry.outcome, NotFound):
                del self._entries[key]
        return True

    async def _ask(
        self,
        key: Hashable,
        fresh_for_ms: int,
        ask: Callable[[], Awaitable[Partial[T]]],
        costly: bool,
        generation: int,
    ) -> Answer[T]:
        _inside_question.set(True)  # in the context of the question's own task
        asked_at_ms = self._clock_ms()
        try:
            partial = await ask()
        except GatewayError as failure:
            if generation == self._generation:
                self._store(key, failure, min(FAILURE_FRESH_MS, fresh_for_ms))
            raise
        finally:
            if generation == self._generation:
                self._in_flight.pop(key, None)
        answer = Answer(partial.value, partial.failures, asked_at_ms)
        if generation == self._generation:
            took_ms = self._clock_ms() - asked_at_ms if costly else 0
            costly_fresh_ms = min(took_ms * FRESH_PER_WORK, COSTLY_FRESH_MAX_MS)
            stale_ms = STALE_MAX_MS if costly else 0
            costly_ms = took_ms if costly else None
            self._store(key, answer, max(fresh_for_ms, costly_fresh_ms), stale_ms, costly_ms)
        return answer

    def _store(
        self,
        key: Hashable,
        outcome: Answer[Any] | GatewayError,
        fresh_ms: int,
        stale_ms: int = 0,
        costly_ms: int | None = None,
    ) -> None:
        if fresh_ms <= 0:
            return  # shared in flight only
        now = self._clock_ms()
        if now >= self._sweep_at_ms:
            self._sweep_at_ms = now + SWEEP_EVERY_MS
            expired = [key for key, entry in self._entries.items() if entry.stale_until_ms <= now]
            for old in expired:
                del self._entries[old]
        self._entries[key] = _Entry(outcome, now + fresh_ms, now + fresh_ms + stale_ms, costly_ms)
        self._entries.move_to_end(key)
        while len(self._entries) > self._answers_max:
            self._entries.popitem(last=False)


def _asked_before(entry: _Entry, at_ms: int) -> bool:
    return isinstance(entry.outcome, Answer) and entry.outcome.asked_at_ms < at_ms
