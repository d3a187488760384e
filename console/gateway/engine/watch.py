"""The watch of a cluster: one question, repeated while people use the console.

Costly answers stay in the cache for up to half a minute. The watched question sends a cheap request
to every broker: within seconds after an outage or a recovery, the console drops cached answers.
"""

import asyncio
from time import monotonic
from typing import Any

from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import Question
from console.gateway.engine.session import ClusterSession

#: Interval of the watched question, seconds.
WATCH_EVERY_S = 2.0
#: Time from the last question of a page, feed or job to the end of the watch, seconds.
WATCH_LINGER_S = 60.0


class Watch:
    """Repeats one question on one session; belongs to the event loop of the gateway."""

    def __init__(self, session: ClusterSession, watched: Question[[], Any]) -> None:
        self._session = session
        self._watched = watched
        self._until_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def extend(self) -> None:
        """Start the watch, or keep it running for WATCH_LINGER_S."""
        self._until_s = monotonic() + WATCH_LINGER_S
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"watch {self._session.cluster}")

    async def _run(self) -> None:
        while monotonic() < self._until_s:
            await asyncio.sleep(WATCH_EVERY_S)
            try:
                await self._session.ask(self._watched)
            except GatewayError:
                continue  # pages get the error from their own questions
