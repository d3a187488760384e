"""Pending requests to a peer, by opaque."""

import asyncio
import itertools

from core_broker.errors import ConnectionClosed, RequestTimeout
from core_broker.remoting.command import RemotingCommand

_OPAQUE_MASK = 0x7FFFFFFF
_opaques = itertools.count(1)


def next_opaque() -> int:
    """Return an opaque that is unique among the pending requests of this process."""
    return next(_opaques) & _OPAQUE_MASK


class PendingRequests:
    """The pending requests of a connection. Event loop only."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: dict[int, asyncio.Future[RemotingCommand]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    async def answer_to(
        self, request: RemotingCommand, peer: str, timeout_ms: float
    ) -> RemotingCommand:
        """Wait for the answer to a sent request; raises RequestTimeout or ConnectionClosed."""
        loop, opaque = asyncio.get_running_loop(), request.opaque
        future: asyncio.Future[RemotingCommand] = loop.create_future()
        self._futures[opaque] = future
        timer = loop.call_later(timeout_ms / 1000, _expire, future, peer, request.code, timeout_ms)
        try:
            return await future
        finally:
            timer.cancel()
            self._futures.pop(opaque, None)

    def answered(self, response: RemotingCommand) -> bool:
        """Resolve the request of an answer; returns False without a pending request."""
        future = self._futures.pop(response.opaque, None)
        if future is None or future.done():
            return False
        future.set_result(response)
        return True

    def fail(self, peer: str, reason: str) -> None:
        """Make every pending `answer_to` raise ConnectionClosed."""
        futures, self._futures = self._futures, {}
        for future in futures.values():
            if not future.done():
                future.set_exception(ConnectionClosed(peer, reason))


def _expire(
    future: asyncio.Future[RemotingCommand], peer: str, code: int, timeout_ms: float
) -> None:
    if not future.done():
        future.set_exception(RequestTimeout(peer, code, round(timeout_ms)))
