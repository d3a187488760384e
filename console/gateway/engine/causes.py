"""Why a broker accepts no messages.

RocketMQ's remark of SERVICE_NOT_AVAILABLE lists every possible reason, and Gantry's brokers answer
the same text. A Gantry broker has its own reason in the runtime information, as in `/readyz`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from console.gateway.engine.answers import now_ms
from core_broker.errors import GantryError, RequestRefused
from core_broker.remoting.bodies.inventory import GANTRY_REFUSAL_KEY
from core_broker.remoting.codes import ResponseCode

#: Age of a known reason after which the broker is asked again, milliseconds.
FRESH_MS: Final = 1_000
#: Maximum duration of the request for a reason, seconds.
ASK_S_MAX: Final = 2.0


class Causes:
    """The reasons of brokers; `read` returns the runtime information of an address."""

    def __init__(self, read: Callable[[str], Awaitable[Mapping[str, str]]]) -> None:
        self._read = read
        self._lock = asyncio.Lock()
        #: Time and reason by address: one entry per broker that has refused a message.
        self._known: dict[str, tuple[int, str]] = {}

    async def named(self, refusal: RequestRefused) -> RequestRefused:
        """Return the refusal with the broker's own reason; the same refusal where none is known."""
        if refusal.code != ResponseCode.SERVICE_NOT_AVAILABLE or refusal.addr is None:
            return refusal
        async with self._lock:
            reason = await self._reason(refusal.addr)
        return RequestRefused(refusal.code, reason, refusal.addr) if reason else refusal

    async def _reason(self, addr: str) -> str:
        asked_ms, reason = self._known.get(addr, (0, ""))
        if now_ms() - asked_ms < FRESH_MS:
            return reason
        reason = ""
        with suppress(GantryError, TimeoutError):
            async with asyncio.timeout(ASK_S_MAX):
                reason = (await self._read(addr)).get(GANTRY_REFUSAL_KEY, "")
        self._known[addr] = now_ms(), reason
        return reason
