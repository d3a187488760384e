"""The name server: sockets, request processors, the scan for expired brokers, side port."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_broker.config import NamesrvConfig
from core_broker.monitoring.metrics import Family
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort
from core_broker.remoting.connection import Connection
from core_broker.remoting.settings_owner import SettingsOwner
from core_broker.service import Service, monotonic_ms
from namesrv.kv import load_key_values
from namesrv.route_processor import RouteProcessor
from namesrv.routes import RouteTable
from namesrv.settings_processor import SettingsProcessor

if TYPE_CHECKING:
    from core_broker.auth.server_access import ServerAccess
    from core_broker.controller.server import Controller

log = logging.getLogger(__name__)


class NameServer:
    """`await start()` binds and serves; `await stop()` stops in order."""

    def __init__(self, config: NamesrvConfig) -> None:
        """Read kvConfig.json and the TLS files; raises SettingsError for settings of no use."""
        self.routes = RouteTable()
        key_values = load_key_values(
            Path(config.kv_config_path),
            value_bytes_max=config.max_kv_value_size,
            table_bytes_max=config.max_kv_table_size,
        )
        self._owner = SettingsOwner(
            config,
            is_private=config.authentication_enabled,
            on_change=self.routes.invalidate,
        )
        self._settings = SettingsProcessor(self._owner, key_values)
        routes = RouteProcessor(self.routes, key_values, lambda: self._owner.config, monotonic_ms)
        self._service = Service(config, "namesrv", on_close=self._lost)
        self._service.handlers = {**routes.handlers, **self._settings.handlers}
        self._access = _access_control(config)
        if self._access is not None:
            self._service.handlers |= self._access.handlers
            self._service.admit = self._access.admit
        #: The controller in this name server; None without enableControllerInNamesrv.
        self.controller: Controller | None = None
        if config.enable_controller_in_namesrv:
            self.controller = self._new_controller(config)
            self.readiness.check("controller", self.controller.leader_problem)
        self._scan: asyncio.Task[None] | None = None

    def _new_controller(self, config: NamesrvConfig) -> "Controller":
        # Only a name server with a controller imports Raft and the store.
        from core_broker.controller.server import Controller

        return Controller(config, self._owner, self._service.admit)

    @property
    def config(self) -> NamesrvConfig:
        """The settings in force."""
        return self._owner.config

    @property
    def port(self) -> int:
        """The port for clients and brokers, 0 before the start."""
        return self._service.port

    @property
    def side_port(self) -> SidePort | None:
        """The side port."""
        return self._service.side_port

    @property
    def readiness(self) -> Readiness:
        """Whether the name server serves."""
        return self._service.readiness

    @property
    def request_codes(self) -> frozenset[int]:
        """The request codes that the name server answers."""
        return frozenset(self._service.handlers)

    async def start(self) -> None:
        """Read the users, and bind the ports; start the controller before.

        Raises CannotListen when a port is in use, SettingsError, StoreCorrupt and StoreLocked when
        users or the controller's state cannot be read.
        """
        config = self.config
        if self._access is not None:
            self._access.load()
        if self.controller is not None:
            await self.controller.start()
        await self._service.listen("listenPort", config.bind_address, config.listen_port)
        self._scan = asyncio.get_running_loop().create_task(self._scan_for_expired_brokers())
        await self._service.open_side_port(
            config.bind_address, "nameserver", self.varz, self._families
        )
        self.readiness.set("listening")

    async def stop(self) -> None:
        """Stop accepting, answer the requests in progress, save pending changes, close.

        Raises ControllerFailed when the controller ended by itself.
        """
        if self._scan is not None:
            self._scan.cancel()
        await self._service.close()
        await self._settings.drain()
        if self._access is not None:
            await self._access.drain()
        await self._service.close_side_port()
        if self.controller is not None:
            await self.controller.stop()

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
            "access_control": self._access.varz() if self._access else None,
            "controller": self.controller.varz() if self.controller else None,
            **self._service.varz(),
        }

    def _lost(self, connection: Connection) -> None:
        for addr in self.routes.connection_lost(connection):
            log.info("the connection of broker %s is closed; its routes are removed", addr)

    async def _scan_for_expired_brokers(self) -> None:
        while True:
            await asyncio.sleep(self.config.scan_not_active_broker_interval / 1000)
            begin = self._service.server.watchdog.begin()
            self.remove_expired_brokers(monotonic_ms())
            self._service.server.watchdog.end(begin, "expire_brokers")

    def remove_expired_brokers(self, now_ms: int) -> None:
        """Remove the brokers without a recent heartbeat, and close their connections."""
        for live in self.routes.expire(now_ms):
            log.warning("broker %s sent no heartbeat in time; its routes are removed", live.name)
            live.connection.close("no heartbeat")

    def _families(self) -> Iterator[Family]:
        connections = len(self._service.server.connections)
        yield Family("rocketmq_namesrv_brokers", [({}, len(self.routes.live))])
        yield Family("rocketmq_namesrv_topics", [({}, len(self.routes.topics))])
        yield Family("rocketmq_namesrv_connections", [({}, connections)])
        yield from self._service.families()
        yield self._service.request_family("rocketmq_namesrv_requests_total")
        refused = [({"request_code": str(code)}, n) for code, n in self._settings.refused.items()]
        yield Family("rocketmq_namesrv_refused_changes_total", refused)
        if self._access is not None:
            yield from self._access.families()
        if self.controller is not None:
            yield from self.controller.families()


def _access_control(config: NamesrvConfig) -> "ServerAccess | None":
    """Return the access control, None without authenticationEnabled. Raises SettingsError."""
    if not (config.authentication_enabled or config.authorization_enabled):
        return None
    # Only a name server with access control imports users and rules.
    from core_broker.auth.server_access import server_access
    from namesrv.demands import demands_of

    folder = Path(config.kv_config_path).parent
    return server_access(config, folder, "kvConfigPath", demands_of, config.broker_cluster_name)
