"""The sends in flight of a producer: counted, bounded, and awaited at the stop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from core_broker.client.results import SendResult
from core_broker.client.sending import Outgoing
from core_broker.errors import ClientError

log = logging.getLogger(__name__)


class InFlight:
    """The sends in flight of one producer."""

    def __init__(self, submitted_max: int) -> None:
        self._submitted_max = submitted_max
        self._tasks: set[asyncio.Task[SendResult]] = set()
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def track(self) -> AsyncIterator[None]:
        """Count a send as in flight inside the block."""
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    def submit(
        self,
        send: Callable[[Outgoing, int | None], Awaitable[SendResult]],
        outgoing: Outgoing,
        timeout_ms: int | None,
        on_sent: Callable[[SendResult | None, Exception | None], None] | None,
    ) -> asyncio.Task[SendResult]:
        """Begin a send in the background; raises ClientError at the limit of in_flight_max."""
        if len(self._tasks) >= self._submitted_max:
            raise ClientError(
                f"{len(self._tasks)} messages are in flight already; raise in_flight_max."
            )

        async def run() -> SendResult:
            async with self.track():
                return await send(outgoing, timeout_ms)

        task = asyncio.get_running_loop().create_task(run(), name=f"send to {outgoing.topic}")
        self._tasks.add(task)

        def done(ended: asyncio.Task[SendResult]) -> None:
            self._tasks.discard(ended)
            if on_sent is not None:
                _report_outcome(on_sent, ended)

        task.add_done_callback(done)
        return task

    async def drain(self, timeout_s: float) -> None:
        """Wait until all sends ended; cancel submitted sends still running after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("%d sends did not end in time", self._count)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _report_outcome(
    on_sent: Callable[[SendResult | None, Exception | None], None],
    ended: asyncio.Task[SendResult],
) -> None:
    if ended.cancelled():
        on_sent(None, ClientError("The producer was stopped before the message was sent."))
        return
    error = ended.exception()
    if error is None:
        on_sent(ended.result(), None)
    elif isinstance(error, Exception):
        on_sent(None, error)
