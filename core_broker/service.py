"""A remoting server with a table of handlers and a side port: what small servers share.

Name server and controller are made of it; the broker has more ports and an order of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from core_broker.errors import CannotListen
from core_broker.monitoring.metrics import (
    Family,
    Metrics,
    event_loop_family,
    remoting_families,
    tls_families,
)
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort, serve_http
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch, Limits
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_server import ServerTls

if TYPE_CHECKING:
    from core_broker.config import ControllerConfig, NamesrvConfig

#: Raises the refusal of a request.
Admit = Callable[[Connection, RemotingCommand], None]

#: Maximum wait of a stop for requests in progress, seconds.
DRAIN_SECONDS = 3.0


def monotonic_ms() -> int:
    """Return the monotonic clock in milliseconds."""
    return time.monotonic_ns() // 1_000_000


class Service:
    """One port for requests, and the state of readiness.

    `handlers` maps request codes; other codes are refused. `port` is 0 before `listen`.
    """

    def __init__(
        self,
        config: "NamesrvConfig | ControllerConfig",
        name: str,
        on_close: Callable[[Connection], None],
        refusal: Callable[[str], str] = lambda host: "",
    ) -> None:
        """Prepare; raises SettingsError for TLS files of no use.

        `refusal` returns why a peer with an address may not connect, or "".
        """
        self.port = 0
        self.readiness = Readiness()
        self.side_port: SidePort | None = None
        self.handlers: dict[int, Dispatch] = {}
        #: Raises the refusal of a request before its handler runs; None admits all.
        self.admit: Admit | None = None
        #: Answered requests by code.
        self.answered: Counter[int] = Counter()
        self._config = config
        self.server = RemotingServer(
            self._dispatch,
            name=name,
            limits=Limits(idle_close_s=config.server_channel_max_idle_time_seconds),
            on_close=on_close,
            tls=ServerTls(config, name),
            refusal=refusal,
        )
        self.readiness.set("listening", "not yet")

    async def listen(self, key: str, host: str, port: int) -> None:
        """Bind the port of the setting `key`; raises CannotListen."""
        try:
            self.port = await self.server.listen(host, port)
        except OSError as error:
            raise CannotListen(key, host, port, error) from None

    async def open_side_port(
        self,
        host: str,
        node_type: str,
        varz: Callable[[], Mapping[str, Any]],
        families: Callable[[], Iterator[Family]],
    ) -> None:
        """Serve health, metrics and tables; raises CannotListen and SettingsError."""
        port = self._config.http_port
        if port < 0:
            return
        metrics = Metrics({"node_type": node_type})
        metrics.source(families)
        try:
            self.side_port = await serve_http(
                *(host, port, self.readiness, varz, metrics),
                token_file=self._config.metrics_token_file,
            )
        except OSError as error:
            raise CannotListen("httpPort", host, port, error) from None

    async def close(self) -> None:
        """Stop accepting, answer the requests in progress, and close the port for requests."""
        self.readiness.set("listening", "shutting down")
        await self.server.close(DRAIN_SECONDS)

    async def close_side_port(self) -> None:
        """Close the side port, the last step of a stop."""
        if self.side_port is not None:
            await self.side_port.close()

    def varz(self) -> dict[str, Any]:
        """Return the counters for /varz."""
        return {
            "connections": len(self.server.connections),
            "tls": self.server.tls.varz() if self.server.tls else {"mode": "disabled"},
            "event_loop_holds": self.server.watchdog.varz(),
            "requests": {str(code): count for code, count in self.answered.items()},
        }

    def families(self) -> Iterator[Family]:
        """Yield the metrics of connections, TLS and the event loop."""
        yield from remoting_families(len(self.server.connections), asdict(self.server.counters))
        if self.server.tls is not None:
            yield from tls_families(self.server.tls.varz())
        yield event_loop_family(self.server.watchdog.counts())

    def request_family(self, name: str) -> Family:
        """Return the answered requests by code."""
        return Family(name, [({"request_code": str(k)}, n) for k, n in self.answered.items()])

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        handler = self.handlers.get(request.code)
        if handler is None:
            # A Java 4.9.8 name server sends no response, so that clients run into their timeout.
            # This response is that of 5.x, which every client understands.
            return RemotingCommand.response(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
        self.answered[request.code] += 1
        if self.admit is not None:
            self.admit(connection, request)
        return handler(connection, request)
