"""The controller: sockets, the Raft member, scans of heartbeats, side port."""

import asyncio
import logging
import signal
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from core_broker.auth.acl2.demands import Demand, Mode
from core_broker.auth.acl2.source_addresses import SourceAddresses, listed_addresses, peer_address
from core_broker.auth.contracts import Request
from core_broker.auth.server_access import ServerAccess, server_access
from core_broker.auth.server_settings import server_credentials
from core_broker.config import ControllerConfig, NamesrvConfig
from core_broker.controller.changes import Changes
from core_broker.controller.live_brokers import LiveBrokers
from core_broker.controller.log_requests import LogRequests
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.peers import Peers, peers_of
from core_broker.controller.processor import ControllerProcessor
from core_broker.controller.role_changes import RoleChanges
from core_broker.errors import CannotListen, GantryError, SettingProblem, SettingsError
from core_broker.monitoring.metrics import Family
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort
from core_broker.raft.ready import Status
from core_broker.raft_member import MemberAddress, MemberSettings, RaftMember
from core_broker.raft_member.status import MemberStatus, raft_families
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.settings_owner import SettingsOwner
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls
from core_broker.service import Admit, Service, monotonic_ms

log = logging.getLogger(__name__)

#: Keys that no request may change, beside those of configBlackList.
FORBIDDEN_KEYS = ("configBlackList", "configStorePath", "rocketmqHome")

#: The settings of a controller as a program, and those of a name server with a controller.
AnyConfig = ControllerConfig | NamesrvConfig


class ControllerFailed(GantryError):
    """The controller's part of the group ended, because of its disk or its state."""


class Controller:
    """`await start()` binds and serves; `await stop()` stops in order.

    In a name server the settings have another owner, and the name server has the side port.
    """

    def __init__(
        self,
        config: AnyConfig,
        owner: SettingsOwner[AnyConfig] | None = None,
        admit: Admit | None = None,
    ) -> None:
        """Prepare; raises SettingsError for peers, folders and TLS files of no use.

        `admit` is the access control of a name server; a program has its own.
        """
        self.peers = peers_of(config)
        self.replicas = ReplicasInfo()
        self.member = RaftMember(_member_settings(config, self.peers), self.replicas)
        self.raft_port = 0
        self._is_program = isinstance(config, ControllerConfig)
        has_secrets = bool(config.authentication_enabled or server_credentials(config))
        self._settings: SettingsOwner[AnyConfig] = owner or SettingsOwner(
            config, forbidden_keys=FORBIDDEN_KEYS, is_private=has_secrets
        )
        self._live = LiveBrokers(monotonic_ms())
        self._role_changes = RoleChanges(
            RemotingClient(
                name="controller", tls=_client_tls(config), rpc_hooks=_signatures(config)
            )
        )
        self.changes = Changes(
            *(self.replicas, self.member, self._live, self._role_changes),
            lambda: self._settings.config,
            monotonic_ms,
        )
        processor = ControllerProcessor(
            self.replicas, self.member, self._live, self.changes, self.peers, monotonic_ms
        )
        self._log_requests = LogRequests(processor.in_log, self.member)
        allowed = listed_addresses(
            "controllerAllowedAddresses", config.controller_allowed_addresses
        )
        self._service = Service(
            config,
            "controller",
            on_close=lambda lost: self.changes.brokers_lost(self._live.connection_lost(lost)),
            refusal=partial(_address_refusal, allowed),
        )
        self._service.handlers = {
            **processor.at_once,
            **dict.fromkeys(processor.in_log, self._begin),
            RequestCode.UPDATE_CONTROLLER_CONFIG: self._settings.update,
            RequestCode.GET_CONTROLLER_CONFIG: self._settings.show,
        }
        self._service.admit = admit
        self._access = _access(config) if self._is_program else None
        if self._access is not None:
            self._service.handlers |= self._access.handlers
            self._service.admit = self._access.admit
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def config(self) -> AnyConfig:
        """The settings in force."""
        return self._settings.config

    @property
    def bind_address(self) -> str:
        """The address of all ports."""
        return self.config.bind_address or self.peers.own.host

    @property
    def port(self) -> int:
        """The port for brokers and administration, 0 before the start."""
        return self._service.port

    @property
    def side_port(self) -> SidePort | None:
        """The side port of a program of its own."""
        return self._service.side_port

    @property
    def readiness(self) -> Readiness:
        """Whether the controller serves, and the group has a leader."""
        return self._service.readiness

    @property
    def request_codes(self) -> frozenset[int]:
        """The request codes that the controller answers."""
        return frozenset(self._service.handlers)

    async def start(self) -> None:
        """Read users and state, take part in the group, and bind the ports.

        Raises CannotListen, SettingsError, StoreCorrupt and StoreLocked.
        """
        self.readiness.check("leader", self.leader_problem)
        if self._access is not None:
            self._access.load()
        await self._start_member()
        host = self.bind_address
        await self._service.listen("controllerDLegerPeers", host, self.peers.own.port)
        for work in (self._expire_brokers(), self._elect_missing(), self._end_with_member()):
            self._tasks.append(asyncio.get_running_loop().create_task(work))
        if self._is_program:
            await self._service.open_side_port(host, "controller", self.varz, self._all_families)
        self.readiness.set("listening")

    async def stop(self) -> None:
        """Stop accepting, answer the requests in progress, hand over, save, close.

        Raises ControllerFailed when the member of the group ended by itself.
        """
        for task in self._tasks:
            task.cancel()
        await self.changes.close()
        await self._service.close()
        await self._log_requests.close()
        await self._role_changes.close()
        await self._settings.drain()
        if self._access is not None:
            await self._access.drain()
        await self.member.stop()
        await self._service.close_side_port()
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
            "access_control": self._access.varz() if self._access else None,
            **self._service.varz(),
        }

    def leader_problem(self) -> str:
        """Return why the controllers decide nothing; "" while one of them leads."""
        return "" if self._leader_name() else "no controller leads the group"

    def families(self) -> Iterator[Family]:
        """Yield the metrics of elections, requests and the Raft member."""
        yield Family("rocketmq_controller_role", [({}, 2 if self.member.is_leader else 1)])
        yield Family("rocketmq_controller_active_broker_num", [({}, len(self._live))])
        elections = self.changes.elections.items()
        yield Family(
            "rocketmq_controller_election_total",
            [({"election_result": k}, n) for k, n in elections],
        )
        yield Family("rocketmq_controller_failovers_total", [({}, self.changes.failovers)])
        sets = list(self.replicas)
        lost = sum(each.master_id is None for each in sets)
        yield Family("rocketmq_controller_broker_sets", [({}, len(sets))])
        yield Family("rocketmq_controller_broker_sets_without_master", [({}, lost)])
        yield self._service.request_family("rocketmq_controller_request_total")
        yield from raft_families(self.member.status())

    def _all_families(self) -> Iterator[Family]:
        yield from self.families()
        yield from self._service.families()
        if self._access is not None:
            yield from self._access.families()

    def _begin(self, connection: Connection, request: RemotingCommand) -> None:
        self._log_requests.begin(self._service.server, connection, request)

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


def _access(config: AnyConfig) -> ServerAccess | None:
    """Return the access control of a program; None without authenticationEnabled."""
    return server_access(
        config, Path(config.controller_store_path), "controllerStorePath", _super_users_only
    )


def _super_users_only(request: Request, cluster: str, mode: Mode) -> tuple[Demand, ...] | None:
    """Every code of a controller needs a super user: elections concern all messages."""
    return None


def _address_refusal(allowed: SourceAddresses, host: str) -> str:
    if allowed.has(peer_address(host)):
        return ""
    return "the address is not allowed; see controllerAllowedAddresses"


def _member_settings(config: AnyConfig, peers: Peers) -> MemberSettings:
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
            allowed_peers=listed_addresses(
                "raftAllowedAddresses", config.raft_allowed_addresses
            ).texts,
            server_tls=ServerTls(
                config, "raft", needs_certificates=config.raft_tls_need_client_auth
            ),
            client_tls=_client_tls(config),
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


def _signatures(config: AnyConfig) -> list[RpcHook]:
    """Return the hook that signs notices, none without credentials."""
    credentials = server_credentials(config)
    if credentials is None:
        return []
    # The client library is read only where a hook needs it.
    from core_broker.client.acl import AclRpcHook

    return [AclRpcHook(*credentials)]


def _client_tls(config: AnyConfig) -> ClientTls | None:
    is_enforced = config.tls_server_mode == "enforcing" or config.raft_tls_need_client_auth
    is_used = config.tls_enable or is_enforced
    return ClientTls.of(config) if is_used else None
