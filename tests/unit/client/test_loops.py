"""Background jobs: intervals, waking, failures, and a reliable stop."""

import asyncio

import pytest

from core_broker.client.loops import Loop
from core_broker.errors import ClientError
from tests.support.eventually import eventually


async def test_a_step_runs_at_once_and_then_at_the_interval() -> None:
    steps: list[float] = []

    async def step() -> None:
        steps.append(asyncio.get_running_loop().time())

    loop = Loop("test", 0.01, step)
    loop.start()
    await eventually(lambda: len(steps) >= 3)
    await loop.stop()
    count = len(steps)
    await asyncio.sleep(0.03)
    assert len(steps) == count


async def test_waking_begins_the_next_step_and_several_calls_count_once() -> None:
    steps: list[str] = []

    async def step() -> None:
        steps.append("step")

    loop = Loop("test", 60, step, first_delay_s=60)
    loop.start()
    await asyncio.sleep(0)
    assert steps == []
    loop.wake()
    loop.wake()
    await eventually(lambda: steps)
    await asyncio.sleep(0.02)
    assert steps == ["step"]
    await loop.stop()


async def test_a_step_may_ask_for_the_next_one_sooner() -> None:
    steps: list[str] = []

    async def step() -> float:
        steps.append("step")
        return 0.005

    loop = Loop("test", 60, step)
    loop.start()
    await eventually(lambda: len(steps) >= 3)
    await loop.stop()


async def test_failures_do_not_end_the_loop_and_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps: list[str] = []

    async def step() -> None:
        steps.append("step")
        raise ClientError("always the same") if len(steps) < 4 else ValueError("a slip")

    loop = Loop("the job", 0.005, step)
    loop.start()
    await eventually(lambda: len(steps) >= 5)
    await loop.stop()
    assert caplog.text.count("the job: always the same") == 1
    assert "ValueError: a slip" in caplog.text


@pytest.mark.parametrize("turns", range(8))
async def test_stopping_stops_however_recently_it_was_woken(turns: int) -> None:
    async def step() -> None:
        return None

    loop = Loop("test", 60, step, first_delay_s=60)
    loop.start()
    await asyncio.sleep(0.001)
    loop.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await loop.stop()
    await loop.stop()
