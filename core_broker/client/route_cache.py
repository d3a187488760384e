"""Routes that a client knows, asked for once and refreshed in the background.

What a client once learnt it keeps while the name servers are away, so running clients go on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core_broker.client.name_servers import NameServers
from core_broker.client.routes import (
    broker_addr,
    publish_queues,
    route_for_new_topic,
    subscribe_queues,
)
from core_broker.errors import ClientError, GantryError, RequestRefused
from core_broker.message.topics import AUTO_CREATE_TOPIC
from core_broker.remoting.bodies import (
    MASTER_ID,
    MessageQueue,
    TopicRouteData,
    decode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import GetRouteInfoRequestHeader

#: Topics one client keeps routes of; the one asked for longest ago makes room.
ROUTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """A route, read once into what producers and consumers want of it."""

    data: TopicRouteData
    publish_queues: tuple[MessageQueue, ...]
    subscribe_queues: tuple[MessageQueue, ...]


class RouteCache:
    """Owned by one client on its event loop."""

    def __init__(
        self,
        name_servers: NameServers,
        timeout_ms: int,
        on_new_broker: Callable[[], None] = lambda: None,
    ) -> None:
        self._name_servers = name_servers
        self._timeout_ms = timeout_ms
        self._on_new_broker = on_new_broker
        self._routes: dict[str, TopicRoute] = {}
        self._stale: set[str] = set()
        self._asking: dict[str, asyncio.Task[TopicRoute]] = {}
        self._addrs: dict[str, dict[int, str]] = {}

    async def route(self, topic: str) -> TopicRoute:
        """The route of a topic. Raises RequestRefused when no broker has it and TransportError
        when no name server answers, unless an older answer is at hand."""
        known = self._routes.get(topic)
        if known is not None and topic not in self._stale:
            return known
        try:
            return await self._ask_once(topic)
        except GantryError:
            if known is None:
                raise
            return known

    async def publish_route(self, topic: str, queue_nums: int) -> TopicRoute:
        """Like ``route``; for an unknown topic, what the broker will make of the first message."""
        try:
            return await self.route(topic)
        except RequestRefused as refused:
            if refused.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            try:
                template = await self.route(AUTO_CREATE_TOPIC)
            except RequestRefused:
                raise refused from None
        data = route_for_new_topic(template.data, queue_nums)
        # Not kept: the next message asks again and finds the real route.
        return _read_route(topic, data)

    async def refresh(self) -> None:
        """Ask again for every topic that is in use; raises the first failure after trying all."""
        failure: GantryError | None = None
        for topic in list(self._routes):
            try:
                await self._ask_once(topic)
            except GantryError as error:
                failure = failure or error
        self._addrs = {}
        for route in self._routes.values():
            self._learn_brokers(route.data)
        if failure:
            raise failure

    def mark_stale(self, topic: str) -> None:
        """The route led astray: ask again before it is used the next time."""
        self._stale.add(topic)

    def addr(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """Where a broker is; raises ClientError when no route names it."""
        addr = broker_addr(self._addrs.get(broker_name, {}), broker_id)
        if addr is None:
            raise ClientError(f"The broker {broker_name} is in no route that this client knows.")
        return addr

    def master_addr(self, broker_name: str) -> str | None:
        return self._addrs.get(broker_name, {}).get(MASTER_ID)

    def broker_addrs(self, *, masters_only: bool) -> list[str]:
        """Every address to send heartbeats to."""
        return sorted(
            {
                addr
                for addrs in self._addrs.values()
                for broker_id, addr in addrs.items()
                if broker_id == MASTER_ID or not masters_only
            }
        )

    async def _ask_once(self, topic: str) -> TopicRoute:
        """Many senders wait for one question."""
        task = self._asking.get(topic)
        if task is None:
            task = asyncio.create_task(self._ask(topic), name=f"route of {topic}")
            self._asking[topic] = task
            task.add_done_callback(lambda done: self._asked(topic, done))
        return await asyncio.shield(task)

    def _asked(self, topic: str, task: asyncio.Task[TopicRoute]) -> None:
        self._asking.pop(topic, None)
        if not task.cancelled():
            task.exception()  # Whoever waited has it; if all were cancelled, nobody wants it.

    async def _ask(self, topic: str) -> TopicRoute:
        header = GetRouteInfoRequestHeader(topic=topic)
        answer = await self._name_servers.ask(
            lambda: RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header),
            self._timeout_ms,
        )
        route = _read_route(topic, decode_body(TopicRouteData, answer.body))
        self._routes.pop(topic, None)
        if len(self._routes) >= ROUTES_MAX:
            del self._routes[next(iter(self._routes))]
        self._routes[topic] = route
        self._stale.discard(topic)
        if self._learn_brokers(route.data):
            self._on_new_broker()
        return route

    def _learn_brokers(self, data: TopicRouteData) -> bool:
        changed = False
        for broker in data.broker_datas:
            if self._addrs.get(broker.broker_name) != broker.broker_addrs:
                self._addrs[broker.broker_name] = dict(broker.broker_addrs)
                changed = True
        return changed

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read_route(topic: str, data: TopicRouteData) -> TopicRoute:
    return TopicRoute(
        data, tuple(publish_queues(topic, data)), tuple(subscribe_queues(topic, data))
    )
