"""Topic routes of a client: fetched at first use and refreshed in the background.

Cached routes stay valid while the name servers are unreachable, so running clients continue.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core_broker.allocation import subscribe_queues
from core_broker.client.name_servers import NameServers
from core_broker.client.routes import (
    broker_addr,
    publish_queues,
    route_for_new_topic,
)
from core_broker.errors import ClientError, GantryError, RequestRefused, TransportError
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

#: Maximum cached routes of one client; the least recently fetched route is evicted.
ROUTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """A route with the queues for producers and for consumers."""

    data: TopicRouteData
    publish_queues: tuple[MessageQueue, ...]
    subscribe_queues: tuple[MessageQueue, ...]


class RouteCache:
    """Owned by one client, on the client's event loop."""

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
        self._fetching: dict[str, asyncio.Task[TopicRoute]] = {}
        self._addrs: dict[str, dict[int, str]] = {}

    async def route(self, topic: str) -> TopicRoute:
        """The route of a topic. Without a cached route, raises RequestRefused when no broker has
        the topic and TransportError when no name server answers."""
        cached = self._routes.get(topic)
        if cached is not None and topic not in self._stale:
            return cached
        try:
            return await self._fetch_shared(topic)
        except GantryError:
            if cached is None:
                raise
            return cached

    async def publish_route(self, topic: str, queue_nums: int) -> TopicRoute:
        """Like ``route``; for an unknown topic, the expected route after auto-creation."""
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
        # Not cached: the next message fetches the real route.
        return _read_route(topic, data)

    async def refresh(self) -> None:
        """Fetch the routes of all cached topics; raises the first failure after trying all."""
        failure: GantryError | None = None
        for topic in list(self._routes):
            try:
                await self._fetch_shared(topic)
            except GantryError as error:
                failure = failure or error
        self._addrs = {}
        for route in self._routes.values():
            self._update_addrs(route.data)
        if failure:
            raise failure

    def mark_stale(self, topic: str) -> None:
        """Fetch the route before the next use, because a request by the route failed."""
        self._stale.add(topic)

    def note_failure(self, topic: str, error: GantryError) -> None:
        """Mark the route stale after an error that another broker may not give."""
        is_refused = isinstance(error, RequestRefused) and error.route_stale
        if is_refused or isinstance(error, TransportError):
            self.mark_stale(topic)

    def addr(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """The address of a broker; raises ClientError when no cached route names the broker."""
        addr = broker_addr(self._addrs.get(broker_name, {}), broker_id)
        if addr is None:
            raise ClientError(f"The broker {broker_name} is in no cached route of the client.")
        return addr

    def master_addr(self, broker_name: str) -> str | None:
        return self._addrs.get(broker_name, {}).get(MASTER_ID)

    def broker_addrs(self, *, masters_only: bool) -> list[str]:
        """The broker addresses for heartbeats."""
        return sorted(
            {
                addr
                for addrs in self._addrs.values()
                for broker_id, addr in addrs.items()
                if broker_id == MASTER_ID or not masters_only
            }
        )

    async def _fetch_shared(self, topic: str) -> TopicRoute:
        """Fetch a route; concurrent callers share one request to the name servers."""
        task = self._fetching.get(topic)
        if task is None:
            task = asyncio.create_task(self._fetch(topic), name=f"route of {topic}")
            self._fetching[topic] = task
            task.add_done_callback(lambda done: self._fetched(topic, done))
        return await asyncio.shield(task)

    def _fetched(self, topic: str, task: asyncio.Task[TopicRoute]) -> None:
        self._fetching.pop(topic, None)
        if not task.cancelled():
            # The callers received the exception; mark it retrieved for the case without callers.
            task.exception()

    async def _fetch(self, topic: str) -> TopicRoute:
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
        if self._update_addrs(route.data):
            self._on_new_broker()
        return route

    def _update_addrs(self, data: TopicRouteData) -> bool:
        changed = False
        for broker in data.broker_datas:
            if self._addrs.get(broker.broker_name) != broker.broker_addrs:
                self._addrs[broker.broker_name] = dict(broker.broker_addrs)
                changed = True
        return changed

    async def close(self) -> None:
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read_route(topic: str, data: TopicRouteData) -> TopicRoute:
    return TopicRoute(
        data, tuple(publish_queues(topic, data)), tuple(subscribe_queues(topic, data))
    )
