"""The remoting client: one connection per server address, opened on demand and reopened on loss."""

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from core_broker.errors import ClientError, ConnectFailed, RequestTimeout
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch, Endpoint, Limits
from core_broker.remoting.iteration import IterationEnd
from core_broker.remoting.tls_client import ClientTls, handshake_failure

#: Default timeout for opening a connection, ms.
CONNECT_TIMEOUT_MS = 3_000
#: Default timeout for a request, ms.
REQUEST_TIMEOUT_MS = 3_000
#: Idle time before the client closes a connection, seconds. The servers' idle time is longer, so
#: that no request is sent on a connection that the server is closing.
IDLE_CLOSE_S = 60.0

_PORT_MAX = 65_535
_CLOSED = "the client was closed"


class RpcHook(Protocol):
    """Called for every request of a client. A hook for request signing adds its fields here."""

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        """Called before a request is sent; may change the command's ext fields."""

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        """Called after the answer has arrived."""


def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """The dispatch function of a client without request handlers."""
    return RemotingCommand.response(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
    )


class RemotingClient(Endpoint):
    """Sends requests to any number of servers; `dispatch` answers requests of the servers.

    Answers with any response code are returned. A missing answer raises a TransportError. With
    `tls` all connections use TLS.
    """

    def __init__(
        self,
        *,
        name: str,
        dispatch: Dispatch | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        limits: Limits | None = None,
        on_close: Callable[[Connection], None] | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        super().__init__(
            dispatch or refuse,
            name=name,
            limits=limits or Limits(idle_close_s=IDLE_CLOSE_S),
            iteration_end=IterationEnd(),
            on_close=on_close,
        )
        self._rpc_hooks = tuple(rpc_hooks)
        self._connect_timeout_ms = connect_timeout_ms
        self._by_addr: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Task[Connection]] = {}
        self._tls = tls
        self._is_closed = False

    async def invoke(
        self, addr: str, command: RemotingCommand, timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> RemotingCommand:
        """Send a request and wait for its answer; `timeout_ms` includes the time for connecting."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        connection = self._by_addr.get(addr)
        if connection is None or connection.closed:
            try:
                async with asyncio.timeout_at(deadline):
                    connection = await self.connection(addr)
            except TimeoutError:
                raise ConnectFailed(addr, f"no answer in {round(timeout_ms)} ms") from None
        left_ms = (deadline - loop.time()) * 1000
        if left_ms <= 0:
            raise RequestTimeout(addr, command.code, round(timeout_ms))
        for hook in self._rpc_hooks:
            hook.before_request(addr, command)
        response = await connection.invoke(command, left_ms)
        for hook in self._rpc_hooks:
            hook.after_response(addr, command, response)
        return response

    async def oneway(self, addr: str, command: RemotingCommand) -> None:
        """Send a one-way request; raises only when connecting fails."""
        connection = await self.connection(addr)
        for hook in self._rpc_hooks:
            hook.before_request(addr, command)
        connection.send(command)

    async def connection(self, addr: str) -> Connection:
        """The open connection to an address, opened if needed; raises ConnectFailed."""
        connection = self._by_addr.get(addr)
        if connection is not None and not connection.closed:
            return connection
        if self._is_closed:
            raise ClientError(f"The client {self.name} is closed.")
        task = self._connecting.get(addr)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._connect(addr))
            self._connecting[addr] = task
            task.add_done_callback(partial(self._connected, addr))
        try:
            # shield(): a cancelled caller must not cancel the connection for other callers.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ConnectFailed(addr, _CLOSED) from None
            raise

    async def close(self) -> None:
        """Close all connections; pending requests raise ConnectionClosed."""
        self._is_closed = True
        for task in list(self._connecting.values()):
            task.cancel()
        await self._close_all(_CLOSED)
        self._by_addr.clear()

    def _connected(self, addr: str, task: "asyncio.Task[Connection]") -> None:
        del self._connecting[addr]
        if not task.cancelled() and task.exception() is None:
            self._by_addr[addr] = task.result()

    async def _connect(self, addr: str) -> Connection:
        host, port = split_addr(addr)
        loop = asyncio.get_running_loop()
        context = None if self._tls is None else self._tls.context()
        try:
            async with asyncio.timeout(self._connect_timeout_ms / 1000):
                _, connection = await loop.create_connection(
                    lambda: Connection(self), host, port, ssl=context
                )
        except TimeoutError:
            raise ConnectFailed(addr, f"no answer in {self._connect_timeout_ms} ms") from None
        except ssl.SSLError as fault:
            raise ConnectFailed(addr, handshake_failure(fault)) from None
        except OSError as fault:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            raise ConnectFailed(addr, reason) from None
        return connection


def split_addr(addr: str) -> tuple[str, int]:
    """Split host:port into host and port; raises ClientError for a malformed address."""
    host, _, port = addr.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= _PORT_MAX:
        raise ClientError(f"{addr!r} is no address; expected host:port.")
    return host.strip("[]"), int(port)
