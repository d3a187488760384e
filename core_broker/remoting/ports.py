"""The listening sockets of one server, with or without TLS."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from core_broker.remoting.endpoint import Counters, Limits
from core_broker.remoting.tls_listener import Admission, TlsListener, listening_sockets
from core_broker.remoting.tls_server import ServerTls

#: Maximum connections waiting for accept(): the backlog of listen().
BACKLOG = 1024


@dataclass(slots=True, eq=False)
class Ports:
    """Any number of ports with the same protocol. Event loop only.

    `accept` makes the protocol of a connection. `admission` and `limits` hold for connections
    before their first byte, on ports with TLS: without TLS the protocol is opened at once.
    """

    accept: Callable[[], asyncio.BaseProtocol]
    #: None, or the mode `disabled`, for ports without TLS.
    tls: ServerTls | None
    limits: Limits
    counters: Counters
    admission: Admission
    _servers: list[asyncio.Server] = field(default_factory=list)
    _listeners: list[TlsListener] = field(default_factory=list)
    _watch: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        """Take the mode `disabled` for no TLS."""
        if self.tls is not None and self.tls.mode == "disabled":
            self.tls = None

    async def listen(self, host: str, port: int) -> int:
        """Listen on a further port, 0 for any free port; returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        if self.tls is None:
            server = await loop.create_server(self.accept, host, port, backlog=BACKLOG)
            self._servers.append(server)
            actual: int = server.sockets[0].getsockname()[1]
            return actual
        listeners = [
            TlsListener(sock, self.tls, self.accept, self.admission, self.limits, self.counters)
            for sock in await listening_sockets(host, port, BACKLOG)
        ]
        self._listeners += listeners
        if self._watch is None:
            self._watch = loop.create_task(self.tls.watch())
        return listeners[0].port

    def close(self) -> None:
        """Stop listening; open connections stay."""
        for server in self._servers:
            server.close()
        for listener in self._listeners:
            listener.close()
        self._servers.clear()
        self._listeners.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
