"""One broker from its start to its stop.

    start   side port · store (recovers) · tables · newer offsets of slaves · ports · jobs ·
            name servers, or controllers, which choose the role first
    stop    refuse sends · name servers · answer held pulls · drain · slaves · controllers ·
            tables · store · side port

All parts run on one event loop; files are synced in threads.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from core_broker.broker.assembly import Parts, assemble, load_tables
from core_broker.broker.exposure import Exposure
from core_broker.config import BrokerConfig
from core_broker.errors import CannotListen, SettingProblem, SettingsError
from core_broker.ha.master_metrics import master_families
from core_broker.ha.slave_metrics import slave_families
from core_broker.monitoring.metrics import Family, Metrics
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort, serve_http
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.store.consume_queues import ArrivalListener

log = logging.getLogger(__name__)

#: Difference between listen port and VIP port.
VIP_DISTANCE = 2
#: Maximum wait of a stop for pending responses.
DRAIN_S = 3.0


class Broker:
    """A broker process: `await start()` serves on `addr`, `await stop()` stops in order.

    `settings_file` is rewritten when an administrator updates settings (code 25).
    """

    def __init__(self, config: BrokerConfig, settings_file: Path | None = None) -> None:
        self.readiness = Readiness()
        self.side_port: SidePort | None = None
        self._parts: Parts = assemble(config, settings_file)
        self._ctx: BrokerContext = self._parts.ctx
        self._server = self._parts.server
        self._exposure = Exposure(
            self._ctx,
            self._parts.requests,
            self._server,
            self._parts.compiled,
            self._parts.access,
            lambda: self._parts.slave,
            self._replica_set,
        )
        self._metrics = Metrics()
        self._workers: list[asyncio.Task[None]] = []
        self._has_tables = False
        self._is_stopped = False

    @property
    def config(self) -> BrokerConfig:
        """The current settings."""
        return self._ctx.config

    @property
    def addr(self) -> str:
        """The address in the routes of clients."""
        return self._ctx.addr

    @property
    def port(self) -> int:
        """The port of `addr`."""
        return self._ctx.host[1]

    @property
    def vip_port(self) -> int:
        """The VIP port, which accepts sends and no pulls."""
        return self._ctx.vip_port

    @property
    def ha_port(self) -> int:
        """The port for slaves; 0 on a slave."""
        return 0 if self._parts.replication is None else self._parts.replication.port

    async def start(self) -> None:
        """Open the store and serve.

        Raises CannotListen when a port is in use, SettingsError when an address or the store folder
        cannot be used, StoreLocked when another broker uses the store, StoreCorrupt when recovery
        cannot repair the store. Unreachable name servers do not fail the start.
        """
        self.readiness.set("started", "starting")
        await self._open_side_port()
        await self._load_rules()
        await self._open_store()
        if self._parts.newest_offsets is not None:
            await self._parts.newest_offsets.adopt()
        await self._listen()
        self._parts.jobs.start()
        loop = asyncio.get_running_loop()
        if self._parts.manager is not None:
            self._parts.manager.start()
        elif self._parts.dledger is not None:
            await self._parts.dledger.start()
        elif self._parts.slave is None:
            for work in (self._parts.delays.run(), self._parts.checks.run()):
                self._workers.append(loop.create_task(work))
        else:
            self._parts.slave.start()
        self._expose()
        if not self.config.has_elected_role:
            await self._parts.registration.start(self.addr)
        self.readiness.set("started")

    async def stop(self) -> None:
        """Stop in order; after the return, every acknowledged message is on disk.

        Also ends a start that failed. A second call does nothing.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._ctx.is_accepting = False
        self.readiness.set("started", "stopping")
        await self._parts.registration.stop()
        if self._parts.fixed_slave is not None:
            await self._parts.fixed_slave.stop()
        self._parts.requests.pulls.release_all()
        await self._server.close(DRAIN_S)
        if self._parts.replication is not None:
            await self._parts.replication.stop()
        if self._parts.manager is not None:
            # Last: at the end of their connections the controllers elect another master.
            await self._parts.manager.stop()
        if self._parts.dledger is not None:
            await self._parts.dledger.stop()
        await self._parts.jobs.stop()
        tasks = [*self._ctx.tasks, *self._workers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for file in (self._ctx.settings_file, self._ctx.users_file):
            if file is not None:
                await file.drain()
        if self._has_tables:
            # Tables are written only after a complete load: an unreadable file must stay unchanged.
            self._parts.saver.close()
        self._ctx.store.close()
        if self.side_port is not None:
            await self.side_port.close()

    async def _load_rules(self) -> None:
        access = self._parts.access
        if access is not None and access.acl1 is not None:
            await access.acl1.start()
            self.readiness.check("acl", access.acl1.problem)
            self._workers.append(asyncio.get_running_loop().create_task(access.acl1.run()))

    async def _open_side_port(self) -> None:
        config = self.config
        if config.http_port < 0:
            return
        try:
            self.side_port = await serve_http(
                config.bind_address,
                config.http_port,
                self.readiness,
                self._varz,
                self._metrics,
                token_file=config.metrics_token_file,
            )
        except OSError as error:
            raise CannotListen("httpPort", config.bind_address, config.http_port, error) from None

    async def _open_store(self) -> None:
        config, ctx = self.config, self._ctx
        try:
            await asyncio.to_thread(ctx.store.load, self._recovering)
            await asyncio.to_thread(load_tables, self._parts)
            self._has_tables = True
            if self._parts.manager is not None:
                self._parts.manager.roles.fence()
            if self._parts.dledger is not None:
                self._parts.dledger.fence()
        except OSError as error:
            raise _setting(
                "storePathRootDir", config.store_path_root_dir, f"a usable folder ({error})"
            ) from None
        loop = asyncio.get_running_loop()
        for waiting in (self._parts.requests.held_pulls, self._parts.delays):
            ctx.store.arrival_listeners.append(ArrivalListener(waiting.topics, waiting.arrived))
        ctx.store.start(loop)
        self._parts.executor.start(loop)
        for table in ConfigTable:
            ctx.saver.save(table)

    def _recovering(self, what: str, share: float) -> None:
        self.readiness.set("started", f"{what}, {share:.0%}")

    async def _listen(self) -> None:
        config, ctx = self.config, self._ctx
        ip = await _address_of(config.broker_ip1)
        port = await self._listen_on("listenPort", config.listen_port)
        # Set before a client can connect to the VIP port.
        ctx.host = (ip, port)
        wanted_vip = config.listen_port - VIP_DISTANCE if config.listen_port > VIP_DISTANCE else 0
        ctx.vip_port = await self._listen_on("listenPort - 2 (VIP)", wanted_vip)
        if self._parts.replication is not None:
            await self._parts.replication.start(port)
            self._parts.registration.ha_port = self.ha_port
            ctx.ha_addr = f"{config.broker_ip2}:{self.ha_port}"

    async def _listen_on(self, key: str, port: int) -> int:
        try:
            return await self._server.listen(self.config.bind_address, port)
        except OSError as error:
            raise CannotListen(key, self.config.bind_address, port, error) from None

    def _expose(self) -> None:
        ctx = self._ctx
        self.readiness.check("store", lambda: ctx.store.read_only_reason or "")
        self.readiness.check("registered", lambda: self._parts.registration.problem)
        self._exposure.add_metrics(self._metrics)
        manager, slave = self._parts.manager, self._parts.fixed_slave
        if slave is not None:
            ctx.ha_client_info = slave.runtime_info
        if slave is not None or manager is not None:
            self.readiness.check("replication", self._copying_problem)
            self._metrics.source(self._slave_metrics)
        elected = manager or self._parts.dledger
        if elected is not None:
            self.readiness.check("role", lambda: elected.problem)
        if manager is not None:
            self._metrics.source(manager.families)
        if self._parts.replication is not None:
            self._metrics.source(partial(master_families, self._parts.replication))

    def _replica_set(self) -> dict[str, Any] | None:
        elected = self._parts.manager or self._parts.dledger
        return None if elected is None else elected.varz()

    def _copying_problem(self) -> str:
        slave = self._parts.slave
        return "" if slave is None else slave.problem

    def _slave_metrics(self) -> Iterable[Family]:
        slave = self._parts.slave
        return () if slave is None else slave_families(slave)

    def _varz(self) -> Mapping[str, Any]:
        return self._exposure.varz() if self._ctx.vip_port else self.readiness.report()


async def _address_of(host: str) -> str:
    """Return the IP address of brokerIP1, which every record contains."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None)
    except OSError as error:
        raise _setting("brokerIP1", host, f"an address of this machine ({error})") from None
    return str(found[0][4][0])


def _setting(key: str, value: str, expected: str) -> SettingsError:
    return SettingsError([SettingProblem(key, f"expected {expected}", value)])
