"""Clusters by name, for threads and for other event loops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from django.conf import settings

from console.gateway.engine.answers import Answer
from console.gateway.engine.errors import UnknownCluster
from console.gateway.engine.loop import GatewayLoop
from console.gateway.engine.questions import Command, Question
from console.gateway.engine.session import Desk

P = ParamSpec("P")
T = TypeVar("T")

#: How much longer than the deadline a thread waits for the loop to say that it has passed.
WAIT_SLACK_S = 2.0


class Cluster:
    """One cluster: what views (`ask`, `do`) and feeds (`ask_async`) hold."""

    def __init__(
        self, name: str, namesrv_addr: str, loop: GatewayLoop, desk: Callable[[], Awaitable[Desk]]
    ) -> None:
        self.name = name
        self.namesrv_addr = namesrv_addr
        self._loop = loop
        self._desk = desk

    def __str__(self) -> str:
        return self.name

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Ask from a thread; blocks until the answer or the question's deadline."""
        timeout_s = question.deadline_ms / 1000 + WAIT_SLACK_S
        return self._loop.wait(self._ask(question, *args, **kwargs), timeout_s)

    async def ask_async(
        self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """Ask from another event loop, such as the web server's."""
        work = self._ask(question, *args, **kwargs)
        return await asyncio.wrap_future(self._loop.submit(work))

    def do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out a change from a thread; blocks until it is done or its deadline."""
        timeout_s = command.deadline_ms / 1000 + WAIT_SLACK_S
        return self._loop.wait(self._do(command, *args, **kwargs), timeout_s)

    async def _ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        return await (await self._desk()).ask(question, *args, **kwargs)

    async def _do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await (await self._desk()).do(command, *args, **kwargs)


class Gateway:
    """One per process. Clusters come from the setting CONSOLE_CLUSTERS each time they are named."""

    def __init__(self) -> None:
        self._loop = GatewayLoop()
        self._desks: dict[tuple[str, str], tuple[asyncio.AbstractEventLoop, Desk]] = {}

    def cluster(self, name: str) -> Cluster:
        addr = settings.CONSOLE_CLUSTERS.get(name)
        if addr is None:
            raise UnknownCluster(name)
        return Cluster(name, addr, self._loop, lambda: self._desk(name, addr))

    def clusters(self) -> list[Cluster]:
        return [self.cluster(name) for name in settings.CONSOLE_CLUSTERS]

    def close(self) -> None:
        """Close all connections and stop the loop; the next question starts it again."""
        if self._desks:
            self._loop.wait(self._close_desks(), WAIT_SLACK_S)
        self._loop.stop()

    async def _desk(self, name: str, namesrv_addr: str) -> Desk:
        """The desk of a cluster, one per loop: a forked process has a loop of its own."""
        running = asyncio.get_running_loop()
        opened_on, desk = self._desks.get((name, namesrv_addr), (None, None))
        if desk is None or opened_on is not running:
            desk = Desk(name, namesrv_addr)
            self._desks[name, namesrv_addr] = (running, desk)
        return desk

    async def _close_desks(self) -> None:
        desks, self._desks = self._desks, {}
        for _loop, desk in desks.values():
            await desk.close()


gateway = Gateway()
