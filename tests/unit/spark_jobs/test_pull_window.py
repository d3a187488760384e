"""Concurrent pulls delivered in offset order, with results of random sizes and delays."""

import asyncio
import random

import pytest

from spark_jobs.sources import pull_window
from spark_jobs.sources.pull_window import PulledRange, PullWindow

SEEDS = range(40)
FAR = 10**9


class Sink:
    """Records the delivered offsets: a record is one byte."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def add(self, buffer: bytes, start: int, end: int) -> None:
        assert len(buffer) <= end - start
        self.offsets += range(start, start + len(buffer))


class Broker:
    """Returns random counts after random delays, and counts concurrent pulls."""

    def __init__(self, rng: random.Random, count_max: int, turns: int = 5) -> None:
        self.rng = rng
        self.count_max = count_max
        self.turns = turns
        self.requested: list[tuple[int, int]] = []
        self.concurrent = 0
        self.concurrent_max = 0

    async def pull(self, start: int, end: int) -> PulledRange:
        self.requested.append((start, end))
        self.concurrent += 1
        self.concurrent_max = max(self.concurrent_max, self.concurrent)
        for _ in range(self.rng.randrange(self.turns)):
            await asyncio.sleep(0)
        self.concurrent -= 1
        count = min(end - start, self.rng.randint(1, self.count_max))
        return PulledRange(bytes(count), start, start + count)


async def read_all(
    window: PullWindow, rng: random.Random | None = None
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """All offsets, and for each batch its limit, count and bytes."""
    offsets: list[int] = []
    batches = []
    while not window.is_finished:
        sink, count_max = Sink(), rng.randint(1, 300) if rng else FAR
        size = await window.fill(sink, offsets_max=count_max, bytes_max=FAR)
        assert size == len(sink.offsets)
        offsets += sink.offsets
        batches.append((count_max, len(sink.offsets), size))
    await window.close()
    return offsets, batches


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_comes_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    broker = Broker(rng, rng.choice((1, 31, 32, 500)))
    start, end = sorted((rng.randrange(5000), rng.randrange(5000)))

    async def go() -> None:
        window = PullWindow(broker.pull, start, end, ahead_offsets=rng.choice((1, 64, FAR)))
        offsets, batches = await read_all(window, rng)
        assert offsets == list(range(start, end))
        # A batch ends with the result that reaches the limit.
        assert all(count < count_max + broker.count_max for count_max, count, _ in batches)

    asyncio.run(go())
    assert all(start <= begin < stop <= end for begin, stop in broker.requested)
    assert broker.concurrent_max <= pull_window.CONCURRENT_PULLS


def test_the_span_adapts_to_the_size_of_a_result() -> None:
    class FixedSize(Broker):
        async def pull(self, start: int, end: int) -> PulledRange:
            self.requested.append((start, end))
            count = min(end - start, self.count_max)
            return PulledRange(bytes(count), start, start + count)

    for count_max in (3, 32, 300):
        broker = FixedSize(random.Random(0), count_max)

        async def go(broker: Broker = broker) -> None:
            await read_all(PullWindow(broker.pull, 0, 100_000, ahead_offsets=FAR))

        asyncio.run(go())
        assert len(broker.requested) < 1.1 * 100_000 / count_max + 1000


def test_readahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_window, "READAHEAD_BYTES_MAX", 100)
    first = asyncio.Event()
    requested: list[int] = []

    async def pull(start: int, end: int) -> PulledRange:
        requested.append(start)
        if start == 0:
            await first.wait()
        return PulledRange(bytes(end - start), start, end)

    async def go() -> None:
        window = PullWindow(pull, 0, 10_000, ahead_offsets=FAR)
        sink = Sink()
        filling = asyncio.ensure_future(window.fill(sink, offsets_max=FAR, bytes_max=FAR))
        for _ in range(100):
            await asyncio.sleep(0)
        # At most one more pull per task.
        assert (
            len(requested)
            <= pull_window.CONCURRENT_PULLS + 100 // pull_window.SPAN_OFFSETS_FIRST + 1
        )
        assert sink.offsets == []
        first.set()
        await filling
        assert sink.offsets == list(range(10_000))
        await window.close()

    asyncio.run(go())


def test_no_pulls_while_the_batch_is_full() -> None:
    broker = Broker(random.Random(1), 32, turns=1)

    async def go() -> None:
        window = PullWindow(broker.pull, 0, 100_000, ahead_offsets=64)
        await window.fill(Sink(), offsets_max=1, bytes_max=FAR)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(broker.requested) <= pull_window.CONCURRENT_PULLS * 2 + 64 // 1
        assert max(stop for _, stop in broker.requested) < 1000
        await window.close()

    asyncio.run(go())


def test_an_error_ends_the_read_and_close_cancels_the_rest() -> None:
    broker = Broker(random.Random(2), 32)

    async def pull(start: int, end: int) -> PulledRange:
        if start >= 320:
            raise ValueError("gone")
        return await broker.pull(start, end)

    async def go() -> None:
        window = PullWindow(pull, 0, 10_000, ahead_offsets=FAR)
        with pytest.raises(ValueError, match="gone"):
            await window.fill(Sink(), offsets_max=FAR, bytes_max=FAR)
        await window.close()
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    asyncio.run(go())


def test_an_error_of_the_sink_ends_the_read() -> None:
    class FailingSink:
        def add(self, buffer: bytes, start: int, end: int) -> None:
            raise ValueError("broken record")

    broker = Broker(random.Random(3), 32)

    async def go() -> None:
        window = PullWindow(broker.pull, 0, 1000, ahead_offsets=FAR)
        with pytest.raises(ValueError, match="broken record"):
            await window.fill(FailingSink(), offsets_max=FAR, bytes_max=FAR)
        await window.close()

    asyncio.run(go())


def test_missing_offsets_are_skipped() -> None:
    """A result may end far behind the requested range, without any bytes."""

    async def pull(start: int, end: int) -> PulledRange:
        if 100 <= start < 700:
            return PulledRange(b"", start, 700)
        count = min(end - start, 700 if start >= 700 else 100 - start)
        return PulledRange(bytes(count), start, start + count)

    async def go() -> None:
        offsets, _ = await read_all(PullWindow(pull, 0, 1000, ahead_offsets=64))
        assert offsets == [*range(100), *range(700, 1000)]

    asyncio.run(go())
