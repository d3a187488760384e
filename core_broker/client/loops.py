"""Background jobs of a client: run at an interval, or immediately when woken."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from core_broker.client.failure_log import FailureLog
from core_broker.errors import GantryError

log = logging.getLogger(__name__)


class Loop:
    """Runs ``step`` repeatedly until stopped. Repetitions of a failure are not logged.

    A step returns the pause before the next step in seconds; None is the interval.
    """

    def __init__(
        self,
        name: str,
        interval_s: float,
        step: Callable[[], Awaitable[float | None]],
        *,
        first_delay_s: float = 0.0,
    ) -> None:
        self._name = name
        self._interval_s = interval_s
        self._first_delay_s = first_delay_s
        self._step = step
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = FailureLog(log, name)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Begin the next step now; several calls before the step begins count once."""
        self._woken.set()

    async def stop(self) -> None:
        """Cancel the job and wait for the end of the task."""
        if self._task is None:
            return
        task, self._task = self._task, None
        task.cancel()
        await asyncio.wait([task])

    async def _run(self) -> None:
        await self._pause(self._first_delay_s)
        while True:
            self._woken.clear()
            pause_s = None
            try:
                pause_s = await self._step()
            except GantryError as error:
                self._failures.failed(str(error))
            except Exception:
                # The boundary of the task: a bug in one step must not end the job.
                log.exception("%s failed", self._name)
            else:
                self._failures.succeeded()
            await self._pause(self._interval_s if pause_s is None else pause_s)

    async def _pause(self, seconds: float) -> None:
        # In Python 3.11 wait_for() can swallow the cancellation which ends the loop.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
