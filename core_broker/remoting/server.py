"""The listening side: broker and name server."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from core_broker.remoting.connection import Connection
from core_broker.remoting.descriptors import connections_possible
from core_broker.remoting.endpoint import Dispatch, Endpoint, Limits

#: Connections that the kernel keeps for us until we accept them.
BACKLOG = 1024

_DRAIN_LOOK_S = 0.02


class RemotingServer(Endpoint):
    """Accepts connections on any number of ports and hands their requests to `dispatch`.

    `dispatch` runs on the event loop to completion. It returns the answer, or None when the answer
    comes later through `connection.answer`. What it raises becomes the answer: RequestRefused with
    its code, anything else with SYSTEM_ERROR.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        name: str,
        limits: Limits | None = None,
        before_write: Callable[[], None] | None = None,
        on_close: Callable[[Connection], None] | None = None,
    ) -> None:
        limits = limits or Limits()
        super().__init__(
            dispatch,
            name=name,
            limits=replace(
                limits, connections_max=min(limits.connections_max, connections_possible())
            ),
            before_write=before_write,
            on_close=on_close,
        )
        self._servers: list[asyncio.Server] = []
        #: Makes the connections.
        self.connection_class: Callable[[Endpoint], Connection] = Connection

    async def listen(self, host: str, port: int) -> int:
        """Listen on one more port, 0 for any free one; returns the actual port."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: self.connection_class(self), host, port, backlog=BACKLOG
        )
        self._servers.append(server)
        actual: int = server.sockets[0].getsockname()[1]
        return actual

    async def close(self, drain_timeout_s: float = 0.0) -> None:
        """Stop listening, wait until everybody has their answers or the time is over, close."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        await self._drain(drain_timeout_s)
        await self._close_all("the server is shutting down")
        self.on_closed()

    async def _drain(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        # Nobody signals this: it is a state of many transports.
        while loop.time() < deadline and not self._is_drained():  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_LOOK_S)

    def _is_drained(self) -> bool:
        return all(connection.is_drained for connection in self.connections)
