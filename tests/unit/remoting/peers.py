"""Servers, clients and raw sockets for remoting tests; all are closed after the test."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.iteration import IterationEnd
from core_broker.remoting.server import RemotingServer

if TYPE_CHECKING:
    from tests.support.polled_intake import PolledIntake

#: A bound for hangs; a busy machine may take seconds for what an idle one does at once.
DEADLINE_S = 60.0


class Peer:
    """A raw socket with frame encoding: a test controls the bytes of every write."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._splitter = FrameSplitter()
        self._ready: list[RemotingCommand] = []

    @classmethod
    async def connect(cls, port: int, receive_buffer: int = 0) -> Self:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
        return cls(reader, writer)

    async def send(self, *commands: RemotingCommand | bytes) -> None:
        """Write all commands with one call."""
        parts = [each if isinstance(each, bytes) else each.encode() for each in commands]
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def receive(self) -> RemotingCommand:
        """The next command."""
        while not self._ready:
            async with asyncio.timeout(DEADLINE_S):
                data = await self._reader.read(65_536)
            assert data, "the server closed the connection"
            self._ready = self._splitter.feed(data)
        return self._ready.pop(0)

    async def at_end(self) -> bytes:
        """All bytes until the server closes the connection."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self._reader.read(-1)
            except ConnectionResetError:
                return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class Loopback:
    """Makes servers, clients and raw peers; the kernel reads the connections of polled servers."""

    def __init__(self, stack: AsyncExitStack, *, is_polled: bool = False) -> None:
        self._stack = stack
        self.is_polled = is_polled
        #: The intake of the last polled server.
        self.intake: PolledIntake

    async def server(self, dispatch: Callable[..., Any], **options: Any) -> RemotingServer:
        if self.is_polled:
            from tests.support.polled_intake import PolledIntake

            self.intake = intake = PolledIntake()
            options["iteration_end"] = intake.end(options.get("iteration_end", IterationEnd()))
            options |= {"intake": intake, "on_stopped": intake.stop}
        server = RemotingServer(dispatch, name="server", **options)
        self._stack.push_async_callback(server.close)
        await server.listen("127.0.0.1", 0)
        return server

    def client(self, **options: Any) -> RemotingClient:
        client = RemotingClient(name="client", **options)
        self._stack.push_async_callback(client.close)
        return client

    async def peer(self, server: RemotingServer, *, receive_buffer: int = 0) -> Peer:
        peer = await Peer.connect(port_of(server), receive_buffer)
        self._stack.push_async_callback(peer.close)
        return peer


def port_of(server: RemotingServer) -> int:
    """The first port of a server."""
    if server._ports._listeners:
        return server._ports._listeners[0].port
    port: int = server._ports._servers[0].sockets[0].getsockname()[1]
    return port


def addr_of(server: RemotingServer) -> str:
    """The first address of a server."""
    return f"127.0.0.1:{port_of(server)}"


async def until(condition: Callable[[], object]) -> None:
    """Poll until the condition is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.002)


def request(code: int = 1, opaque: int = 7, body: bytes = b"", flag: int = 0) -> RemotingCommand:
    """A request of a peer."""
    return RemotingCommand(code, None, body, opaque=opaque, flag=flag)


def echo(connection: Connection, command: RemotingCommand) -> RemotingCommand:
    """Answers with the body of the request."""
    return RemotingCommand.response(0, None, None, command.body)


class Holder:
    """A dispatch function that keeps requests until the test calls `answer`."""

    def __init__(self) -> None:
        self.held: list[tuple[Connection, RemotingCommand]] = []

    def __call__(self, connection: Connection, command: RemotingCommand) -> None:
        self.held.append((connection, command))

    def answer(self, body: bytes = b"") -> None:
        connection, command = self.held.pop(0)
        connection.answer(command, RemotingCommand.response(body=body))


def peer_port(peer: object) -> int:
    port: int = peer.writer.get_extra_info("sockname")[1]  # type: ignore[attr-defined]
    return port
