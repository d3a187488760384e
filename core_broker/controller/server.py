"""The controller: sockets, the Raft member, scans of heartbeats, side port."""

import asyncio
import logging
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core_broker.config.controller import ControllerConfig
from core_broker.controller.changes import Changes
from core_broker.controller.live_brokers import LiveBrokers
from core_broker.controller.log_requests import LogRequests
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.peers import Peers, peers_of
from core_broker.controller.processor import ControllerProcessor
from core_broker.controller.role_changes import RoleChanges
from core_broker.controller.settings_processor import SettingsProcessor
from core_broker.errors import CannotListen, GantryError, SettingProblem, SettingsError
from core_broker.monitoring.metrics import (
    Family,
    Metrics,
    event_loop_family,
    remoting_families,
    tls_families,
)
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort, serve_http
from core_broker.raft.ready import Status
from core_broker.raft_member import MemberAddress, MemberSettings, RaftMember
from core_broker.raft_member.status import MemberStatus, raft_families
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls

log = logging.getLogger(__name__)

#: Maximum wait of a stop for requests in progress, seconds.
DRAIN_SECONDS = 3.0


class ControllerFailed(GantryError):
    """The controller's part of the group ended, because of its disk or its state."""


def monotonic_ms() -> int:
    """Return the monotonic clock in milliseconds."""
    return time.monotonic_ns() // 1_000_000


class Controller:
    """`await start()` binds and serves; `await stop()` stops in order."""

    def __init__(self, config: ControllerConfig) -> None:
        """Prepare; raises SettingsError for peers, folders and TLS files of no use."""
        self.peers = peers_of(config)
        self.replicas = ReplicasInfo()
        self.member = RaftMember(_member_settings(config, self.peers), self.replicas)
        self.readiness = Readiness()
        self.side_port: SidePort | None = None
        self.raft_port = self.port = 0
        self._settings = SettingsProcessor(config)
        self._live = LiveBrokers(monotonic_ms())
        self._role_changes = RoleChanges(RemotingClient(name="controller", tls=_client_tls(config)))
        self.changes = Changes(
            self.replicas,
            self.member,
            self._live,
            self._role_changes,
            lambda: self._settings.config,
            monotonic_ms,
        )
        processor = ControllerProcessor(
            self.replicas, self.member, self._live, self.changes, self.peers, monotonic_ms
        )
        self._handlers = {**processor.at_once, **self._settings.handlers}
        self._in_log = frozenset(processor.in_log)
        self._log_requests = LogRequests(processor.in_log, self.member)
        self._answered: Counter[int] = Counter()
        limits = Limits(idle_close_s=config.server_channel_max_idle_time_seconds)
        self._server = RemotingServer(
            self._dispatch,
            name="controller",
            limits=limits,
            on_close=lambda lost: self.changes.brokers_lost(self._live.connection_lost(lost)),
            tls=ServerTls(config, "controller"),
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def config(self) -> ControllerConfig:
        """The settings in force."""
        return self._settings.config

    @property
    def bind_address(self) -> str:
        """The address of all ports."""
        return self.config.bind_address or self.peers.own.host

    @property
    def request_codes(self) -> frozenset[int]:
        """The request codes that the controller answers."""
        return frozenset(self._handlers) | self._in_log

    async def start(self) -> None:
        """Read the state, take part in the group, and bind the ports.

        Raises CannotListen, SettingsError, StoreCorrupt and StoreLocked.
        """
        self.readiness.set("listening", "not yet")
        self.readiness.check("leader", self._leader_problem)
        await self._start_member()
        host, port, http_port = self.bind_address, self.peers.own.port, self.config.http_port
        try:
            self.port = await self._server.listen(host, port)
        except OSError as error:
            raise CannotListen("controllerDLegerPeers", host, port, error) from None
        for work in (self._expire_brokers(), self._elect_missing(), self._end_with_member()):
            self._tasks.append(asyncio.get_running_loop().create_task(work))
        if http_port >= 0:
            metrics = Metrics({"node_type": "controller"})
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
        """Stop accepting, answer the requests in progress, hand over, save, close.

        Raises ControllerFailed when the member of the group ended by itself.
        """
        self.readiness.set("listening", "shutting down")
        for task in self._tasks:
            task.cancel()
        await self.changes.close()
        await self._server.close(DRAIN_SECONDS)
        await self._log_requests.close()
        await self._role_changes.close()
        await self._settings.drain()
        await self.member.stop()
        if self.side_port is not None:
            await self.side_port.close()
        if self.member.failure is not None:
            raise ControllerFailed(f"The controller has failed: {self.member.failure}")

    def varz(self) -> dict[str, Any]:
        """Return the internal tables for /varz."""
        now_ms = monotonic_ms()
        return {
            "group": self.peers.group,
            "leader": self._leader_name(),
            "is_leader": self.member.is_leader,
            "raft": _raft_varz(self.member.status()),
            "broker_sets": {
                found.name: {
                    "cluster": found.cluster,
                    "master": found.master_id,
                    "master_epoch": found.master_epoch,
                    "sync_state_set": list(found.sync_state_set),
                    "sync_state_set_epoch": found.sync_state_set_epoch,
                    "brokers": {
                        str(key): {
                            "address": replica.address,
                            "alive": self._live.is_alive(found, key, now_ms),
                        }
                        for key, replica in found.replicas.items()
                    },
                }
                for found in self.replicas
            },
            "elections": dict(self.changes.elections),
            "failed_notices": self._role_changes.failed,
            "connections": len(self._server.connections),
            "tls": self._server.tls.varz() if self._server.tls else {"mode": "disabled"},
            "event_loop_holds": self._server.watchdog.varz(),
            "requests": {str(code): count for code, count in self._answered.items()},
        }

    async def _start_member(self) -> None:
        own = self.peers.own
        self.member.status_listeners.append(self._status_changed)
        try:
            self.raft_port = await self.member.start()
        except OSError as error:
            if error.filename is None:
                raise CannotListen(
                    "controllerRaftPeers", own.raft_host, own.raft_port, error
                ) from None
            expected = f"a usable folder ({error.strerror})"
            path = self.config.controller_store_path
            raise SettingsError([SettingProblem("controllerStorePath", expected, path)]) from None

    def _status_changed(self, status: Status) -> None:
        log.info("controller %s is %s in term %d", self.peers.own.name, status.role, status.term)
        self.changes.elect_missing()

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        if request.code in self._in_log:
            self._answered[request.code] += 1
            self._log_requests.begin(self._server, connection, request)
            return None
        handler = self._handlers.get(request.code)
        if handler is None:
            return RemotingCommand.response(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
        self._answered[request.code] += 1
        return handler(connection, request)

    async def _expire_brokers(self) -> None:
        while True:
            await asyncio.sleep(self.config.scan_not_active_broker_interval / 1000)
            expired = self._live.expire(monotonic_ms())
            for live in expired:
                live.connection.close("no heartbeat")
            self.changes.brokers_lost(expired)

    async def _elect_missing(self) -> None:
        while True:
            await asyncio.sleep(self.config.scan_inactive_master_interval / 1000)
            self.changes.elect_missing()

    async def _end_with_member(self) -> None:
        failure = await self.member.wait_failed()
        log.critical("the controller ends: %s", failure)
        signal.raise_signal(signal.SIGTERM)

    def _leader_name(self) -> str | None:
        peer = self.peers.by_number.get(self.member.leader_id or 0)
        return None if peer is None else peer.name

    def _leader_problem(self) -> str:
        return "" if self._leader_name() else "no controller leads the group"

    def _metrics(self) -> Iterator[Family]:
        yield Family("rocketmq_controller_role", [({}, 2 if self.member.is_leader else 1)])
        yield Family("rocketmq_controller_active_broker_num", [({}, len(self._live))])
        elections = self.changes.elections.items()
        yield Family(
            "rocketmq_controller_election_total",
            [({"election_result": k}, n) for k, n in elections],
        )
        requests = [({"request_code": str(code)}, n) for code, n in self._answered.items()]
        yield Family("rocketmq_controller_request_total", requests)
        yield from raft_families(self.member.status())
        yield from remoting_families(len(self._server.connections), asdict(self._server.counters))
        if self._server.tls is not None:
            yield from tls_families(self._server.tls.varz())
        yield event_loop_family(self._server.watchdog.counts())


def _member_settings(config: ControllerConfig, peers: Peers) -> MemberSettings:
    addresses = {
        number: MemberAddress(peer.raft_host, peer.raft_port, peer.address)
        for number, peer in peers.by_number.items()
    }
    try:
        return MemberSettings(
            cluster_id=peers.group,
            node_id=peers.self_number,
            addresses=addresses,
            folder=Path(config.controller_store_path),
            bind_host=config.bind_address,
        )
    except ValueError as error:
        problem = SettingProblem("controllerDLegerGroup", str(error), peers.group)
        raise SettingsError([problem]) from None


def _raft_varz(status: MemberStatus) -> dict[str, Any]:
    names = ("term", "last_index", "commit_index", "applied_index", "snapshot_index")
    return {
        "role": status.role.value,
        **{name: getattr(status, name) for name in (*names, "log_bytes", "waiting", "failure")},
        "voters": list(status.voters),
        "peers": {str(number): asdict(peer) for number, peer in status.peers.items()},
        "proposals": dict(status.outcomes),
        "events": dict(status.events),
        "latency_p99_ms": status.latency_ms(0.99),
    }


def _client_tls(config: ControllerConfig) -> ClientTls | None:
    is_used = config.tls_enable or config.tls_server_mode == "enforcing"
    return ClientTls.of(config) if is_used else None
