"""Availability of Redis, checked at most once per FRESH_S for all feeds of a process.

A channel layer reports no error when Redis is down: messages just do not arrive. Feeds over Redis
check availability, so that pages do not present stale data as current.
"""

import asyncio
from time import monotonic

from console.web.dependencies import redis_problem

FRESH_S = 2.0

_answers: dict[asyncio.AbstractEventLoop, tuple[float, asyncio.Task[bool]]] = {}


async def redis_answers() -> bool:
    """Return True when Redis answered within the last FRESH_S."""
    loop = asyncio.get_running_loop()
    for other in [each for each in _answers if each.is_closed()]:
        del _answers[other]
    asked_s, task = _answers.get(loop, (0.0, None))
    if task is None or monotonic() - asked_s > FRESH_S:
        task = asyncio.create_task(_ask(), name="is Redis there?")
        _answers[loop] = monotonic(), task
    return await asyncio.shield(task)


async def _ask() -> bool:
    return await asyncio.to_thread(redis_problem) is None
