"""The registration of a broker at one name server, renewed until the broker stops.

A link registers all topics at its start, every registerNameServerPeriod, and after the loss of the
connection, because a name server then removes the broker at once. A changed topic is registered
alone, at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from core_broker.remoting.bodies import TopicConfig

#: Delay before the retry of a failed registration.
RETRY_MS = 1_000

#: Registers topics (None: all topics) at an address; returns the reason of a failure, or "".
Register = Callable[[str, list[TopicConfig] | None], Awaitable[str]]

log = logging.getLogger(__name__)


class NamesrvLink:
    """One name server with its pending registrations."""

    def __init__(self, addr: str, register: Register) -> None:
        self.addr = addr
        #: Reason why the broker is not registered; "" when registered.
        self.problem = "not yet registered"
        self._register = register
        self._changed: dict[str, TopicConfig] = {}
        self._is_full_due = True
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()

    def change(self, topics: Iterable[TopicConfig]) -> None:
        """Register changed topics soon."""
        self._changed.update((topic.topic_name, topic) for topic in topics)
        self._wake.set()

    def tried(self) -> "asyncio.Future[None]":
        """Register the changes soon; the future is done after the attempt."""
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(tried)
        self._wake.set()
        return tried

    def renew(self) -> None:
        """Request a registration of all topics."""
        self._is_full_due = True
        self._wake.set()

    async def run(self, period_ms: Callable[[], int]) -> None:
        """Send registrations until cancelled."""
        while True:
            await self._tell()
            if self.problem:
                # The name server missed changes; only a full registration brings them.
                self._is_full_due = True
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            try:
                async with asyncio.timeout(period_ms() / 1000):
                    await self._wake.wait()
            except TimeoutError:
                self._is_full_due = True

    async def _tell(self) -> None:
        self._wake.clear()
        topics = None if self._is_full_due else list(self._changed.values())
        self._is_full_due = False
        self._changed.clear()
        waiting, self._waiting = self._waiting, []
        try:
            self._note(await self._register(self.addr, topics))
        except Exception:
            log.exception("registering with name server %s failed", self.addr)
            self.problem = "registering failed; see the log"
        finally:
            for tried in waiting:
                if not tried.done():
                    tried.set_result(None)

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning(
                "not registered with name server %s: %s Trying again; see namesrvAddr (-n).",
                self.addr,
                problem,
            )
        elif self.problem and not problem:
            log.info("registered with name server %s", self.addr)
        self.problem = problem
