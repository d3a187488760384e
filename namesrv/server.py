"""The name server: sockets, request processors, the scan for expired brokers, side port."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core_broker.config import NamesrvConfig
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
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_server import ServerTls
from namesrv.access_control import access_control
from namesrv.kv import load_key_values
from namesrv.route_processor import RouteProcessor
from namesrv.routes import RouteTable
from namesrv.settings_processor import SettingsProcessor

log = logging.getLogger(__name__)

#: Maximum wait of a stop for requests in progress.
DRAIN_SECONDS = 3.0


def monotonic_ms() -> int:
    """Return the monotonic clock in milliseconds."""
    return time.monotonic_ns() // 1_000_000


class NameServer:
    """`await start()` binds and serves; `await stop()` stops in order."""

    def __init__(self, config: NamesrvConfig) -> None:
        """Read kvConfig.json and the TLS files; raises SettingsError for a file of no use."""
        self.config = config
        self.routes = RouteTable()
        self.port = 0
        self.readiness = Readiness()
        self.side_port: SidePort | None = None
        key_values = load_key_values(
            Path(config.kv_config_path),
            value_bytes_max=config.max_kv_value_size,
            table_bytes_max=config.max_kv_table_size,
        )
        self._settings = SettingsProcessor(config, key_values, self.routes.invalidate)
        routes = RouteProcessor(
            self.routes, key_values, lambda: self._settings.config, monotonic_ms
        )
        self._handlers = {**routes.handlers, **self._settings.handlers}
        self._access = access_control(config)
        if self._access is not None:
            self._handlers |= self._access.handlers
        self._answered: Counter[int] = Counter()
        limits = Limits(idle_close_s=config.server_channel_max_idle_time_seconds)
        self._server = RemotingServer(
            self._dispatch,
            name="namesrv",
            limits=limits,
            on_close=self._lost,
            tls=ServerTls(config, "namesrv"),
        )
        self._scan: asyncio.Task[None] | None = None

    @property
    def request_codes(self) -> frozenset[int]:
        """The request codes that the name server answers."""
        return frozenset(self._handlers)

    async def start(self) -> None:
        """Read the users, and bind both ports.

        Raises CannotListen when a port is in use, SettingsError and StoreCorrupt when the users
        cannot be read.
        """
        self.readiness.set("listening", "not yet")
        if self._access is not None:
            self._access.load()
        host, port, http_port = (
            self.config.bind_address,
            self.config.listen_port,
            self.config.http_port,
        )
        try:
            self.port = await self._server.listen(host, port)
        except OSError as error:
            raise CannotListen("listenPort", host, port, error) from None
        self._scan = asyncio.get_running_loop().create_task(self._scan_for_expired_brokers())
        if http_port >= 0:
            metrics = Metrics({"node_type": "nameserver"})
            metrics.source(self._metrics)
            try:
                self.side_port = await serve_http(
                    host,
                    http_port,
                    self.readiness,
                    self.varz,
                    metrics,
                    token_file=self.config.metrics_token_file,
                )
            except OSError as error:
                raise CannotListen("httpPort", host, http_port, error) from None
        self.readiness.set("listening")

    async def stop(self) -> None:
        """Stop accepting, answer the requests in progress, save pending changes, close."""
        self.readiness.set("listening", "shutting down")
        if self._scan is not None:
            self._scan.cancel()
        await self._server.close(DRAIN_SECONDS)
        await self._settings.drain()
        if self._access is not None:
            await self._access.drain()
        if self.side_port is not None:
            await self.side_port.close()

    def varz(self) -> dict[str, Any]:
        """Return the internal tables for /varz."""
        return {
            "clusters": {name: sorted(members) for name, members in self.routes.clusters.items()},
            "brokers": {
                addr: {
                    "name": live.name,
                    "data_version": live.data_version,
                    "silent_ms": monotonic_ms() - live.last_update_ms,
                }
                for addr, live in self.routes.live.items()
            },
            "topics": len(self.routes.topics),
            "connections": len(self._server.connections),
            "tls": self._server.tls.varz() if self._server.tls else {"mode": "disabled"},
            "access_control": self._access.varz() if self._access else None,
            "event_loop_holds": self._server.watchdog.varz(),
            "requests": {str(code): count for code, count in self._answered.items()},
        }

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        handler = self._handlers.get(request.code)
        if handler is None:
            # A Java 4.9.8 name server sends no response, so that clients run into their timeout.
            # This response is that of 5.x, which every client understands.
            return RemotingCommand.response(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
        self._answered[request.code] += 1
        if self._access is not None:
            self._access.admit(connection, request)
        return handler(connection, request)

    def _lost(self, connection: Connection) -> None:
        for addr in self.routes.connection_lost(connection):
            log.info("the connection of broker %s is closed; its routes are removed", addr)

    async def _scan_for_expired_brokers(self) -> None:
        while True:
            await asyncio.sleep(self.config.scan_not_active_broker_interval / 1000)
            begin = self._server.watchdog.begin()
            self.remove_expired_brokers(monotonic_ms())
            self._server.watchdog.end(begin, "expire_brokers")

    def remove_expired_brokers(self, now_ms: int) -> None:
        """Remove the brokers without a recent heartbeat, and close their connections."""
        for live in self.routes.expire(now_ms):
            log.warning("broker %s sent no heartbeat in time; its routes are removed", live.name)
            live.connection.close("no heartbeat")

    def _metrics(self) -> Iterator[Family]:
        yield Family("rocketmq_namesrv_brokers", [({}, len(self.routes.live))])
        yield Family("rocketmq_namesrv_topics", [({}, len(self.routes.topics))])
        yield Family("rocketmq_namesrv_connections", [({}, len(self._server.connections))])
        yield from remoting_families(len(self._server.connections), asdict(self._server.counters))
        if self._server.tls is not None:
            yield from tls_families(self._server.tls.varz())
        yield event_loop_family(self._server.watchdog.counts())
        requests = [({"request_code": str(code)}, n) for code, n in self._answered.items()]
        yield Family("rocketmq_namesrv_requests_total", requests)
        refused = [({"request_code": str(code)}, n) for code, n in self._settings.refused.items()]
        yield Family("rocketmq_namesrv_refused_changes_total", refused)
        if self._access is not None:
            denied = self._access.refusals.counts.items()
            yield Family("rocketmq_auth_refusals_total", [({"reason": k}, n) for k, n in denied])
