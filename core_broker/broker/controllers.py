"""Requests of a broker to the controllers: which one leads, requests to it, heartbeats to all.

Compatible with RocketMQ's ReplicasManager and the requests to controllers of BrokerOuterAPI.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from core_broker.config import BrokerConfig
from core_broker.errors import ClientError, ConnectFailed, GantryError, TransportError
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import Header
from core_broker.remoting.headers.controller import GetMetaDataResponseHeader
from core_broker.remoting.tls_client import ClientTls

#: Timeout of a question for the leader, ms.
METADATA_TIMEOUT_MS = 1_000
#: Timeout of a request to the leader, ms: a controller waits up to five seconds for its group.
REQUEST_TIMEOUT_MS = 6_000
#: The setting to look at when controllers with access control refuse the broker.
REFUSED_HINT = " See innerClientAuthenticationCredentials: the controllers need a super user."

log = logging.getLogger(__name__)


class Controllers:
    """The controllers of controllerAddr. Event loop only."""

    def __init__(
        self,
        settings: Callable[[], BrokerConfig],
        tls: ClientTls | None,
        rpc_hooks: Sequence[RpcHook],
    ) -> None:
        #: Address of the leading controller; "" while unknown.
        self.leader = ""
        #: Why a controller refused the last search; "" when none did.
        self._refusal = ""
        self._settings = settings
        self._client = RemotingClient(name="broker-controller", tls=tls, rpc_hooks=rpc_hooks)
        self._beating: dict[str, asyncio.Task[None]] = {}

    @property
    def addresses(self) -> list[str]:
        """The addresses of the settings."""
        parts = self._settings().controller_addr.split(";")
        return [part.strip() for part in parts if part.strip()]

    async def find_leader(self) -> str:
        """Ask the controllers who leads; return the leader's address, "" without an answer."""
        self._refusal = ""
        for addr in self.addresses:
            with suppress(GantryError):
                if found := await self._leader_of(addr):
                    if found != self.leader:
                        log.info("controller %s leads", found)
                    self.leader = found
                    return found
        self.leader = ""
        return ""

    async def _leader_of(self, addr: str) -> str:
        """Return the leader's address as a controller knows it; "" for none, and when refused."""
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_METADATA_INFO)
        answer = await self._client.invoke(addr, command, METADATA_TIMEOUT_MS)
        if answer.code == ResponseCode.NO_PERMISSION:
            self._refusal = f"{addr} refuses this broker: {answer.remark}{REFUSED_HINT}"
        if answer.code != ResponseCode.SUCCESS:
            return ""
        return answer.header(GetMetaDataResponseHeader).controller_leader_address or ""

    async def ask(self, code: RequestCode, header: Header, body: bytes = b"") -> RemotingCommand:
        """Send a request to the leader; raises TransportError without its answer.

        The answer may be any refusal. After NOT_LEADER or an error, the next request looks for the
        leader again.
        """
        addr = self.leader or await self.find_leader()
        if not addr:
            reason = self._refusal or "no controller leads"
            raise ConnectFailed(self._settings().controller_addr, reason)
        command = RemotingCommand.request(code, header, body)
        try:
            answer = await self._client.invoke(addr, command, REQUEST_TIMEOUT_MS)
        except (TransportError, ClientError):
            self.leader = ""
            raise
        if answer.code == ResponseCode.CONTROLLER_NOT_LEADER:
            self.leader = ""
        return answer

    def send_heartbeat(self, header: Header) -> None:
        """Send a heartbeat to every controller; one without a connection misses some."""
        for addr in self.addresses:
            task = self._beating.get(addr)
            if task is None or task.done():
                command = RemotingCommand.request(RequestCode.BROKER_HEARTBEAT, header)
                task = asyncio.get_running_loop().create_task(self._beat(addr, command))
                self._beating[addr] = task

    async def _beat(self, addr: str, command: RemotingCommand) -> None:
        with suppress(GantryError):
            await self._client.oneway(addr, command)

    async def close(self) -> None:
        """Close the connections: the controllers then elect another master at once."""
        for task in self._beating.values():
            task.cancel()
        await asyncio.gather(*self._beating.values(), return_exceptions=True)
        await self._client.close()
