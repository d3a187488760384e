"""Whether Redis answers, asked once in a moment for all who want to know.

A channel layer says nothing when its Redis goes away: what others send just does not come. Feeds
that go through it ask here, so that their pages do not look current when they are not.
"""

import asyncio
from time import monotonic

from console.web.dependencies import redis_problem

FRESH_S = 2.0

_answers: dict[asyncio.AbstractEventLoop, tuple[float, asyncio.Task[bool]]] = {}


async def redis_answers() -> bool:
    """True when Redis answered within the last FRESH_S."""
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
