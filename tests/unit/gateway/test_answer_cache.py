"""The answer cache: shared in flight, cached while fresh, invalidated after a command."""

import asyncio

import pytest

from console.gateway.engine.answers import Answer, Partial
from console.gateway.engine.cache import (
    COSTLY_FRESH_MAX_MS,
    FAILURE_FRESH_MS,
    MISS_EVERY_MS,
    MISS_PER_WORK,
    STALE_MAX_MS,
    SWEEP_EVERY_MS,
    AnswerCache,
)
from console.gateway.engine.errors import GatewayError, NotFound

FRESH_MS = 2_000


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


class Asked:
    """A question that waits for the test's answer."""

    def __init__(self) -> None:
        self.times = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> Partial[int]:
        self.times += 1
        mine = self.times
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Partial(mine)


async def get(cache: AnswerCache, asked: Asked, key: str = "q") -> Answer[int]:
    return await cache.get(key, FRESH_MS, asked)


async def test_those_who_ask_together_share_one_answer() -> None:
    cache, asked = AnswerCache(Clock()), Asked()
    waiting = [asyncio.create_task(get(cache, asked)) for _ in range(5)]
    await asyncio.sleep(0)
    asked.gate.set()
    answers = await asyncio.gather(*waiting)
    assert asked.times == 1
    assert {id(answer) for answer in answers} == {id(answers[0])}
    assert (cache.misses, cache.hits) == (1, 4)


async def test_a_fresh_answer_is_kept_with_the_time_it_was_asked() -> None:
    clock = Clock()
    cache, asked = AnswerCache(clock), Asked()
    asked.gate.set()
    first = await get(cache, asked)
    clock.ms += FRESH_MS - 1
    assert await get(cache, asked) is first
    assert first.asked_at_ms == 1_000_000
    clock.ms += 1
    assert (await get(cache, asked)).value == 2


@pytest.mark.parametrize(
    ("took_ms", "kept_ms"), [(100, FRESH_MS), (400, 4_000), (60_000, COSTLY_FRESH_MAX_MS)]
)
async def test_a_costly_answer_that_took_long_is_kept_longer(took_ms: int, kept_ms: int) -> None:
    clock = Clock()
    cache, asked = AnswerCache(clock), Asked()
    asking = asyncio.create_task(cache.get("q", FRESH_MS, asked, costly=True))
    while not asked.times:
        await asyncio.sleep(0)
    clock.ms += took_ms
    asked.gate.set()
    await asking
    clock.ms += kept_ms - 1
    assert (await get(cache, asked)).value == 1
    clock.ms += 1
    assert (await get(cache, asked)).value == 2


async def costly(cache: AnswerCache, asked: Asked, key: str = "q") -> Answer[int]:
    return await cache.get(key, FRESH_MS, asked, costly=True)


async def test_a_costly_answer_is_given_once_more_while_it_is_asked_again() -> None:
    clock = Clock()
    cache, asked = AnswerCache(clock), Asked()
    asked.gate.set()
    first = await costly(cache, asked)
    asked.gate.clear()
    clock.ms += FRESH_MS
    assert await costly(cache, asked) is first, "nobody waits"
    await asyncio.sleep(0)
    assert asked.times == 2
    asked.gate.set()
    while (await costly(cache, asked)) is first:
        await asyncio.sleep(0)
    assert (await costly(cache, asked)).value == asked.times == 2
    clock.ms += FRESH_MS + STALE_MAX_MS
    assert (await costly(cache, asked)).value == 3, "too old to be shown"


async def test_what_goes_into_an_answer_is_never_stale() -> None:
    clock = Clock()
    cache, inner = AnswerCache(clock), Asked()
    inner.gate.set()
    await costly(cache, inner, "inner")
    clock.ms += FRESH_MS

    async def outer() -> Partial[int]:
        return Partial((await costly(cache, inner, "inner")).value)

    assert (await cache.get("outer", FRESH_MS, outer)).value == 2


async def test_somebody_who_stops_waiting_does_not_end_it_for_others() -> None:
    cache, asked = AnswerCache(Clock()), Asked()
    one, other = (asyncio.create_task(get(cache, asked)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    asked.gate.set()
    assert (await other).value == 1


async def test_a_failure_is_shared_and_kept_only_briefly() -> None:
    clock = Clock()
    cache, asked = AnswerCache(clock), Asked()
    asked.error = GatewayError("no")
    asked.gate.set()
    for _ in range(2):
        with pytest.raises(GatewayError):
            await get(cache, asked)
    assert asked.times == 1
    clock.ms += FAILURE_FRESH_MS
    asked.error = None
    assert (await get(cache, asked)).value == 2


async def test_a_fault_of_our_own_is_not_kept() -> None:
    cache, asked = AnswerCache(Clock()), Asked()
    asked.error = KeyError("bug")
    asked.gate.set()
    for _ in range(2):
        with pytest.raises(KeyError):
            await get(cache, asked)
    assert asked.times == 2


async def test_an_answer_from_before_a_change_is_used_but_not_kept() -> None:
    cache, asked = AnswerCache(Clock()), Asked()
    before = asyncio.create_task(get(cache, asked))
    await asyncio.sleep(0)
    cache.invalidate()
    after = asyncio.create_task(get(cache, asked))
    await asyncio.sleep(0)
    asked.gate.set()
    assert (await before).value == 1
    assert (await after).value == 2
    assert (await get(cache, asked)).value == 2


async def test_the_number_of_kept_answers_is_bounded() -> None:
    cache, asked = AnswerCache(Clock(), answers_max=3), Asked()
    asked.gate.set()
    for key in "abcd":
        await get(cache, asked, key)
    await get(cache, asked, "d")
    assert asked.times == 4
    await get(cache, asked, "a")
    assert asked.times == 5, "the oldest had to go"


async def test_answers_that_are_no_longer_fresh_do_not_stay_in_memory() -> None:
    clock = Clock()
    cache, asked = AnswerCache(clock), Asked()
    asked.gate.set()
    for key in "abcd":
        await get(cache, asked, key)
    assert len(cache) == 4
    clock.ms += SWEEP_EVERY_MS
    await get(cache, asked, "e")
    assert len(cache) == 1


async def test_a_miss_drops_the_lists_and_the_misses_only() -> None:
    clock = Clock()
    cache, listed, other, missing = AnswerCache(clock), Asked(), Asked(), Asked()
    missing.error = NotFound("no such topic")
    for asked in (listed, other, missing):
        asked.gate.set()
    await cache.get("list", FRESH_MS, listed, costly=True)
    await get(cache, other, "other")
    with pytest.raises(NotFound):
        await get(cache, missing, "name")
    clock.ms += 1
    assert cache.drop_lists(clock.ms)
    await cache.get("list", FRESH_MS, listed, costly=True)
    await get(cache, other, "other")
    with pytest.raises(NotFound):
        await get(cache, missing, "name")
    assert (listed.times, other.times, missing.times) == (2, 1, 2)


async def test_misses_drop_the_lists_no_more_often_than_their_requests_allow() -> None:
    clock = Clock()
    took_ms = 3 * MISS_EVERY_MS

    class Slow(Asked):
        async def __call__(self) -> Partial[int]:
            clock.ms += took_ms
            return await super().__call__()

    cache, listed = AnswerCache(clock), Slow()
    listed.gate.set()
    await cache.get("list", FRESH_MS, listed, costly=True)
    assert not cache.drop_lists(1_000_000), "the list is as new as the miss"
    first_ms = clock.ms
    assert cache.drop_lists(clock.ms)
    assert not cache.drop_lists(clock.ms), "there is no list any more"
    await cache.get("list", FRESH_MS, listed, costly=True)
    clock.ms = first_ms + MISS_PER_WORK * took_ms - 1
    assert not cache.drop_lists(clock.ms)
    clock.ms += 1
    assert cache.drop_lists(clock.ms)
