"""Concurrent pulls delivered in offset order, with results of random sizes and delays."""

import asyncio
import random

import pytest

from spark_jobs.sources import pull_window
from spark_jobs.sources.pull_window import PulledRange, PullWindow

SEEDS = range(40)
FAR = 10**9


class Taken:
    """Records the delivered offsets: a record is one byte."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def add(self, buffer: bytes, start: int, end: int) -> None:
        assert len(buffer) <= end - start
        self.offsets += range(start, start + len(buffer))


class Broker:
    """Returns random counts after random delays, and counts concurrent pulls."""

    def __init__(self, luck: random.Random, most: int, turns: int = 5) -> None:
        self.luck = luck
        self.most = most
        self.turns = turns
        self.asked: list[tuple[int, int]] = []
        self.under_way = 0
        self.under_way_max = 0

    async def ask(self, start: int, end: int) -> PulledRange:
        self.asked.append((start, end))
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        for _ in range(self.luck.randrange(self.turns)):
            await asyncio.sleep(0)
        self.under_way -= 1
        count = min(end - start, self.luck.randint(1, self.most))
        return PulledRange(bytes(count), start, start + count)


async def read_all(
    reading: PullWindow, luck: random.Random | None = None
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """All offsets, and for each batch its limit, count and bytes."""
    offsets: list[int] = []
    batches = []
    while not reading.is_finished:
        taken, most = Taken(), luck.randint(1, 300) if luck else FAR
        size = await reading.fill(taken, offsets_max=most, bytes_max=FAR)
        assert size == len(taken.offsets)
        offsets += taken.offsets
        batches.append((most, len(taken.offsets), size))
    await reading.close()
    return offsets, batches


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_comes_once_and_in_order(seed: int) -> None:
    luck = random.Random(seed)
    broker = Broker(luck, luck.choice((1, 31, 32, 500)))
    start, end = sorted((luck.randrange(5000), luck.randrange(5000)))

    async def go() -> None:
        reading = PullWindow(broker.ask, start, end, ahead_offsets=luck.choice((1, 64, FAR)))
        offsets, batches = await read_all(reading, luck)
        assert offsets == list(range(start, end))
        # A batch ends with the result that reaches the limit.
        assert all(count < most + broker.most for most, count, _ in batches)

    asyncio.run(go())
    assert all(start <= begin < stop <= end for begin, stop in broker.asked)
    assert broker.under_way_max <= pull_window.CONCURRENT_PULLS


def test_a_question_asks_for_what_an_answer_holds() -> None:
    class Set(Broker):
        async def ask(self, start: int, end: int) -> PulledRange:
            self.asked.append((start, end))
            count = min(end - start, self.most)
            return PulledRange(bytes(count), start, start + count)

    for most in (3, 32, 300):
        broker = Set(random.Random(0), most)

        async def go(broker: Broker = broker) -> None:
            await read_all(PullWindow(broker.ask, 0, 100_000, ahead_offsets=FAR))

        asyncio.run(go())
        assert len(broker.asked) < 1.1 * 100_000 / most + 1000


def test_who_is_far_ahead_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_window, "READAHEAD_BYTES_MAX", 100)
    first = asyncio.Event()
    asked: list[int] = []

    async def ask(start: int, end: int) -> PulledRange:
        asked.append(start)
        if start == 0:
            await first.wait()
        return PulledRange(bytes(end - start), start, end)

    async def go() -> None:
        reading = PullWindow(ask, 0, 10_000, ahead_offsets=FAR)
        taken = Taken()
        filling = asyncio.ensure_future(reading.fill(taken, offsets_max=FAR, bytes_max=FAR))
        for _ in range(100):
            await asyncio.sleep(0)
        # At most one more pull per task.
        assert (
            len(asked) <= pull_window.CONCURRENT_PULLS + 100 // pull_window.SPAN_OFFSETS_FIRST + 1
        )
        assert taken.offsets == []
        first.set()
        await filling
        assert taken.offsets == list(range(10_000))
        await reading.close()

    asyncio.run(go())


def test_nothing_is_asked_for_while_a_full_batch_is_not_taken() -> None:
    broker = Broker(random.Random(1), 32, turns=1)

    async def go() -> None:
        reading = PullWindow(broker.ask, 0, 100_000, ahead_offsets=64)
        await reading.fill(Taken(), offsets_max=1, bytes_max=FAR)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(broker.asked) <= pull_window.CONCURRENT_PULLS * 2 + 64 // 1
        assert max(stop for _, stop in broker.asked) < 1000
        await reading.close()

    asyncio.run(go())


def test_a_fault_ends_the_read_and_close_the_rest() -> None:
    broker = Broker(random.Random(2), 32)

    async def ask(start: int, end: int) -> PulledRange:
        if start >= 320:
            raise ValueError("gone")
        return await broker.ask(start, end)

    async def go() -> None:
        reading = PullWindow(ask, 0, 10_000, ahead_offsets=FAR)
        with pytest.raises(ValueError, match="gone"):
            await reading.fill(Taken(), offsets_max=FAR, bytes_max=FAR)
        await reading.close()
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    asyncio.run(go())


def test_a_taker_that_refuses_ends_the_read() -> None:
    class Refuses:
        def add(self, buffer: bytes, start: int, end: int) -> None:
            raise ValueError("broken record")

    broker = Broker(random.Random(3), 32)

    async def go() -> None:
        reading = PullWindow(broker.ask, 0, 1000, ahead_offsets=FAR)
        with pytest.raises(ValueError, match="broken record"):
            await reading.fill(Refuses(), offsets_max=FAR, bytes_max=FAR)
        await reading.close()

    asyncio.run(go())


def test_what_is_not_there_is_passed_over() -> None:
    """A result may end far behind the requested range, without any bytes."""

    async def ask(start: int, end: int) -> PulledRange:
        if 100 <= start < 700:
            return PulledRange(b"", start, 700)
        count = min(end - start, 700 if start >= 700 else 100 - start)
        return PulledRange(bytes(count), start, start + count)

    async def go() -> None:
        offsets, _ = await read_all(PullWindow(ask, 0, 1000, ahead_offsets=64))
        assert offsets == [*range(100), *range(700, 1000)]

    asyncio.run(go())
