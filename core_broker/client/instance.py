"""The common base of producers and consumers: connections, routes, heartbeats, a client id.

Compatible with RocketMQ's MQClientInstance, but each producer or consumer has a separate instance.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from core_broker.client.answers import checked
from core_broker.client.identity import new_client_id
from core_broker.client.loops import Loop
from core_broker.client.name_servers import NameServers, addrs_or_environment
from core_broker.client.pulling import Pull
from core_broker.client.route_cache import RouteCache
from core_broker.errors import GantryError
from core_broker.remoting.bodies import HeartbeatData, encode_body
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch
from core_broker.remoting.ext_fields import Header
from core_broker.remoting.headers import UnregisterClientRequestHeader
from core_broker.remoting.tls_client import ClientTls

log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S: Final = 30.0
ROUTE_REFRESH_INTERVAL_S: Final = 30.0
CALL_TIMEOUT_MS: Final = 3000
UNREGISTER_TIMEOUT_MS: Final = 1000


class ClientInstance:
    """Owned, started and stopped by one producer or consumer, on one event loop."""

    def __init__(
        self,
        namesrv_addr: str,
        *,
        name: str,
        instance_name: str | None = None,
        heartbeat: Callable[[str], HeartbeatData],
        dispatch: Dispatch | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.client_id = new_client_id(instance_name)
        self.namesrv_addr = namesrv_addr = addrs_or_environment(namesrv_addr)
        self.remoting = RemotingClient(
            name=name,
            dispatch=dispatch,
            rpc_hooks=rpc_hooks,
            on_close=self._on_connection_closed,
            tls=tls or ClientTls.from_environment(),
        )
        self._announced: set[str] = set()
        self._without_lite_pull: set[str] = set()
        self._heartbeat = heartbeat
        self._heartbeats = Loop(f"{name} heartbeat", HEARTBEAT_INTERVAL_S, self.send_heartbeats)
        self.routes = RouteCache(
            NameServers(self.remoting, namesrv_addr), CALL_TIMEOUT_MS, self._heartbeats.wake
        )
        self._refresh = Loop(
            f"{name} routes",
            ROUTE_REFRESH_INTERVAL_S,
            self.routes.refresh,
            first_delay_s=ROUTE_REFRESH_INTERVAL_S,
        )

    def start(self) -> None:
        self._heartbeats.start()
        self._refresh.start()

    async def stop(self) -> None:
        """Unregister from the brokers, then close every connection."""
        await self._heartbeats.stop()
        await self._refresh.stop()
        await self.routes.close()
        await self._unregister()
        await self.remoting.close()

    async def ask(
        self,
        addr: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> RemotingCommand:
        """Send a request to a broker; raises RequestRefused for any answer but success."""
        command = RemotingCommand.request(code, header, body)
        return checked(await self.remoting.invoke(addr, command, timeout_ms), addr)

    async def pull(self, addr: str, pull: Pull, timeout_ms: int) -> RemotingCommand:
        """Send a pull request. For a broker without LITE_PULL_MESSAGE (361) the instance falls
        back to PULL_MESSAGE (11) and remembers the broker until a connection closes."""
        if pull.lite and addr not in self._without_lite_pull:
            answer = await self.remoting.invoke(addr, pull.request(), timeout_ms)
            if answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return answer
            self._without_lite_pull.add(addr)
        request = replace(pull, lite=False).request()
        return await self.remoting.invoke(addr, request, timeout_ms)

    def wake_heartbeats(self) -> None:
        """Request heartbeats at the next event-loop iteration, without waiting."""
        self._heartbeats.wake()

    async def announce(self) -> None:
        """Send a heartbeat to all brokers without an earlier heartbeat of the client; failures of
        unreachable brokers are logged."""
        addrs = self._heartbeat_addrs()
        try:
            await self._send_heartbeats_to([addr for addr in addrs if addr not in self._announced])
        except GantryError as error:
            log.info("A heartbeat of %s failed: %s", self.client_id, error)

    async def send_heartbeats(self) -> None:
        """Send a heartbeat to every known broker. The first failure is raised after all brokers
        were tried."""
        await self._send_heartbeats_to(self._heartbeat_addrs())

    def _heartbeat_addrs(self) -> list[str]:
        """Addresses for heartbeats: masters for producers, masters and slaves for consumers."""
        has_consumers = bool(self._heartbeat(self.client_id).consumer_data_set)
        return self.routes.broker_addrs(masters_only=not has_consumers)

    async def _send_heartbeats_to(self, addrs: Sequence[str]) -> None:
        body = encode_body(self._heartbeat(self.client_id))
        outcomes = await asyncio.gather(
            *(self.ask(addr, RequestCode.HEART_BEAT, body=body) for addr in addrs),
            return_exceptions=True,
        )
        failures = []
        for addr, outcome in zip(addrs, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                failures.append(outcome)
            else:
                self._announced.add(addr)
        if failures:
            raise failures[0]

    def _on_connection_closed(self, _connection: Connection) -> None:
        """A broker unregisters a client whose connection closed: send heartbeats to all again."""
        self._announced.clear()
        # The broker may restart with a version supporting lite pulls.
        self._without_lite_pull.clear()

    async def _unregister(self) -> None:
        data = self._heartbeat(self.client_id)
        headers = [
            UnregisterClientRequestHeader(client_id=self.client_id, producer_group=it.group_name)
            for it in data.producer_data_set
        ]
        headers += [
            UnregisterClientRequestHeader(client_id=self.client_id, consumer_group=it.group_name)
            for it in data.consumer_data_set
        ]
        addrs = self._heartbeat_addrs()
        await asyncio.gather(*(self._unregister_from(a, h) for a in addrs for h in headers))

    async def _unregister_from(self, addr: str, header: UnregisterClientRequestHeader) -> None:
        try:
            code = RequestCode.UNREGISTER_CLIENT
            await self.ask(addr, code, header, timeout_ms=UNREGISTER_TIMEOUT_MS)
        except GantryError as error:
            # The broker unregisters the client when the connection closes.
            log.info("Could not unregister: %s", error)
