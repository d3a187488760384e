"""Requests between the members of a group, and the port of this member.

Frames are those of the remoting protocol without ext fields; the code of an answer's frame is
always 200, as the code of DLedger is in its body. The protocol has no signatures: haBindAddress and
haAllowedAddresses protect the port as they protect replication; an empty haAllowedAddresses allows
the hosts of dLegerPeers. Compatible with DLedgerRpcNettyService of DLedger 0.3.1.2.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from core_broker.auth.acl2.source_addresses import listed_addresses
from core_broker.config import BrokerConfig
from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.messages import (
    REQUESTS,
    AnyRequest,
    AnyResponse,
    HeartbeatRequest,
    code_of,
    decode,
    encode,
)
from core_broker.dledger.peers import Group
from core_broker.errors import CannotListen, GantryError
from core_broker.raft_member.admission import Admission
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls

#: Time for an answer, and for a connection, ms: DLedger's.
TIMEOUT_MS = 3_000
#: Connections to the port, and time without traffic before one is closed, seconds.
CONNECTIONS_MAX = 256
IDLE_CLOSE_S = 120.0

log = logging.getLogger(__name__)

#: Where the answer to a request goes.
Token = tuple[Connection, RemotingCommand]
Serve = Callable[[AnyRequest, Token], None]
R = TypeVar("R", bound=AnyResponse)


class Transport:
    """Sends requests to members, and hands theirs over. Event loop only."""

    def __init__(
        self, group: Group, config: BrokerConfig, serve: Serve, lost: Callable[[str], None]
    ) -> None:
        """Prepare; `lost` is called with a leader whose connection is gone.

        Raises SettingsError for an invalid haAllowedAddresses, and for TLS files of no use.
        """
        self._group = group
        self._config = config
        self._serve = serve
        self._lost = lost
        tls = ClientTls.of(config) if config.d_leger_tls_enable else None
        self._client = RemotingClient(name="dledger-peer", connect_timeout_ms=TIMEOUT_MS, tls=tls)
        self._server = RemotingServer(
            self._dispatch,
            name="dledger",
            tls=_port_tls(config),
            limits=Limits(idle_close_s=IDLE_CLOSE_S, connections_max=CONNECTIONS_MAX),
            on_close=self._closed,
            refusal=self._refusal,
        )
        listed = listed_addresses("haAllowedAddresses", config.ha_allowed_addresses)
        hosts = {peer.host for peer in group.members.values()}
        self._admission = Admission(listed.texts, lambda: hosts, "dLegerPeers")
        #: The leader that sent heartbeats on a connection.
        self._leaders: dict[Connection, str] = {}
        self._tasks: set[asyncio.Task[object]] = set()

    async def start(self) -> None:
        """Listen on the port of the own peer; raises CannotListen."""
        config, own = self._config, self._group.own
        host = config.ha_bind_address or config.bind_address
        try:
            await self._server.listen(host, own.port)
        except OSError as error:
            raise CannotListen("dLegerPeers", host, own.port, error) from None
        self._begin(self._admission.resolve())

    async def close(self) -> None:
        """Close the port and all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.close()
        await self._client.close()

    def ask(
        self, target: str, request: AnyRequest, kind: type[R], then: Callable[[R | None], None]
    ) -> None:
        """Send a request; `then` gets the answer, or None without one.

        Requests to one member leave in the order of the calls.
        """
        command = RemotingCommand.request(code_of(request), body=encode(request))
        self._begin(self._ask(target, command, kind, then))

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self,
        target: str,
        command: RemotingCommand,
        kind: type[R],
        then: Callable[[R | None], None],
    ) -> None:
        response: R | None = None
        try:
            answer = await self._client.invoke(self._group.address(target), command, TIMEOUT_MS)
            response = decode(kind, answer.body)
        except GantryError as error:
            log.debug("member %s did not answer %d: %s", target, command.code, error)
        then(response)

    def answer(self, token: Token, response: AnyResponse) -> None:
        """Answer a request."""
        connection, request = token
        connection.answer(
            request, RemotingCommand.response(DLedgerCode.SUCCESS, body=encode(response))
        )

    def _refusal(self, host: str) -> str:
        if self._admission.knows(host):
            return ""
        # The names of members may have other addresses now: the next attempt finds them.
        self._begin(self._admission.resolve())
        return "the address is not one of dLegerPeers or haAllowedAddresses"

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> None:
        kind = REQUESTS.get(request.code)
        if kind is None:
            return  # as DLedger, without an answer
        body = decode(kind, request.body)
        if isinstance(body, HeartbeatRequest):
            self._leaders[connection] = str(body.leader_id)
        self._serve(body, (connection, request))

    def _closed(self, connection: Connection) -> None:
        leader = self._leaders.pop(connection, None)
        if leader is not None:
            self._lost(leader)


def _port_tls(config: BrokerConfig) -> ServerTls:
    """Return the TLS of the port, which enforces TLS with dLegerTlsEnable only.

    Members of RocketMQ speak no TLS.
    """
    if config.tls_server_mode == "enforcing" and not config.d_leger_tls_enable:
        config = replace(config, tls_server_mode="permissive")
    return ServerTls(config, "dledger")
