"""The asking side: one connection per address, made when it is needed and made again when lost."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from core_broker.errors import ClientError, ConnectFailed, RequestTimeout
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch, Endpoint, Limits

CONNECT_TIMEOUT_MS = 3_000
REQUEST_TIMEOUT_MS = 3_000
#: Well before the server's limit, so that no question meets a connection that is being closed.
IDLE_CLOSE_S = 60.0

_PORT_MAX = 65_535
_CLOSED = "the client was closed"


class RpcHook(Protocol):
    """Sees every question of a client; signing puts its fields into the command here."""

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        """The command is about to be sent; its ext fields may be changed."""

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        """The answer has come."""


def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """The dispatch of a client that answers nothing."""
    return RemotingCommand.response(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
    )


class RemotingClient(Endpoint):
    """Asks any number of servers; `dispatch` answers what they ask in turn.

    Answers are returned whatever their code. TransportError kinds tell that there was none.
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
    ) -> None:
        super().__init__(
            dispatch or refuse,
            name=name,
            limits=limits or Limits(idle_close_s=IDLE_CLOSE_S),
            on_close=on_close,
        )
        self._rpc_hooks = tuple(rpc_hooks)
        self._connect_timeout_ms = connect_timeout_ms
        self._by_addr: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Task[Connection]] = {}
        self._is_closed = False

    async def invoke(
        self, addr: str, command: RemotingCommand, timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> RemotingCommand:
        """Ask and wait for the answer; connecting counts towards the time."""
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
        """Send without an answer; only failing to connect is noticed."""
        connection = await self.connection(addr)
        for hook in self._rpc_hooks:
            hook.before_request(addr, command)
        connection.send(command)

    async def connection(self, addr: str) -> Connection:
        """The open connection to an address; raises ConnectFailed when there can be none."""
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
            # Whoever gives up waiting must not take the connection from the others that wait.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ConnectFailed(addr, _CLOSED) from None
            raise

    async def close(self) -> None:
        """Close all connections; whoever waits for an answer gets ConnectionClosed."""
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
        try:
            async with asyncio.timeout(self._connect_timeout_ms / 1000):
                _, connection = await loop.create_connection(lambda: Connection(self), host, port)
        except TimeoutError:
            raise ConnectFailed(addr, f"no answer in {self._connect_timeout_ms} ms") from None
        except OSError as fault:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            raise ConnectFailed(addr, reason) from None
        return connection


def split_addr(addr: str) -> tuple[str, int]:
    """Host and port of host:port; raises ClientError when it is no address."""
    host, _, port = addr.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= _PORT_MAX:
        raise ClientError(f"{addr!r} is no address; it must be host:port.")
    return host.strip("[]"), int(port)
