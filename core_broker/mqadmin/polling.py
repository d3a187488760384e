"""The rounds of polling commands: --interval and --rounds."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count


async def poll(interval_s: float | None, rounds: int) -> AsyncIterator[int]:
    """Yield round numbers from 1 on, `interval_s` apart.

    The iteration ends after `rounds` rounds (0: never), or after one round without an interval.
    """
    for number in count(1):
        yield number
        if interval_s is None or number == rounds:
            return
        await asyncio.sleep(interval_s)
