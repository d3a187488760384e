"""A name server, controllers, and replicas of one broker name, in separate processes.

All of them are on the loopback interface, or each controller and each replica is on a host of its
own (namespaces.py), whose links can be cut.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.request import Request, urlopen

from core_broker.config import java_key
from tests.support.cluster import ROOT, SMALL_STORE, Program, free_broker_port
from tests.support.eventually import eventually
from tests.support.namespaces import TEST, Network

SIDE_PORT = "http: /readyz /metrics /varz"
BROKER_NAME = "broker-a"
SEGMENT_BYTES = 1024 * 1024


def host_names(replicas: int, controllers: int) -> list[str]:
    """The names of the hosts that a set needs."""
    names = [f"replica-{number}" for number in range(replicas)]
    return names + [f"controller-{number}" for number in range(controllers)]


def address_of(network: Network | None, name: str) -> str:
    """The address of a host; without a network, that of the loopback interface."""
    return "127.0.0.1" if network is None else network.address(name)


def _prefix(network: Network | None, name: str) -> Sequence[str]:
    return () if network is None else network.command(name)


def _group(size: int) -> dict[str, Any]:
    """The settings of the members of a DLedger group."""
    members = [f"n{number}-127.0.0.1:{free_broker_port()}" for number in range(size)]
    return {"enable_d_leger_commit_log": True, "d_leger_peers": ";".join(members)}


def _under_controllers(addrs: str) -> dict[str, Any]:
    """The settings of replicas under controllers."""
    return {
        "enable_controller_mode": True,
        "controller_addr": addrs,
        "all_ack_in_sync_state_set": True,
    }


class Replica:
    """One broker of the set; port and store stay over restarts."""

    def __init__(
        self, folder: Path, settings: dict[str, Any], network: Network | None = None
    ) -> None:
        folder.mkdir()
        #: The name of the replica, and of its host in a network.
        self.name = folder.name
        self.address = address_of(network, self.name)
        self.port = free_broker_port()
        self.addr = f"{self.address}:{self.port}"
        self.store = folder / "store"
        self.program = Program("core_broker", folder, prefix=_prefix(network, self.name))
        self.settings = settings | {
            "bind_address": self.address,
            "broker_ip1": self.address,
            "broker_ip2": self.address,
            "listen_port": self.port,
            "store_path_root_dir": self.store,
        }
        self.is_running = False

    def start(self) -> None:
        """Start the broker and wait until its port is open."""
        self.program.start(self.settings)
        self.is_running = True

    def kill(self) -> None:
        """kill -9."""
        self.program.kill()
        self.is_running = False

    def varz(self) -> dict[str, Any]:
        """The tables of the broker; empty while they cannot be read."""
        with suppress(OSError, AssertionError):
            port = self.program.port(SIDE_PORT)
            page = Request(f"http://{self.address}:{port}/varz")
            if token := self.settings.get("metrics_token_file"):
                page.add_header("Authorization", f"Bearer {Path(token).read_text()}")
            with urlopen(page, timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        return {}


class ReplicaSet:
    """Programs on free ports; use as a context manager.

    With `controller_addr` the replicas use controllers of the test; `controller_root` is the source
    tree of the set's own. The hosts of a `network` are `host_names`. With `is_dledger` the replicas
    are a DLedger group without controllers.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        controllers: int = 1,
        controller_addr: str = "",
        *,
        network: Network | None = None,
        controller_settings: Mapping[str, Any] = MappingProxyType({}),
        controller_root: Path = ROOT,
        is_dledger: bool = False,
        **settings: Any,
    ) -> None:
        self._undo = ExitStack()
        own = {"bind_address": address_of(network, TEST), "http_port": 0}
        self.namesrv = Program("namesrv", folder)
        self._undo.callback(self.namesrv.kill)
        kept = {"kv_config_path": folder / "kv.json", "config_store_path": folder / "n.properties"}
        self.namesrv.start({"listen_port": 0, **own, **kept})
        self.namesrv_addr = f"{own['bind_address']}:{self.namesrv.port('remoting')}"
        has_own = not controller_addr and not is_dledger
        names = [f"controller-{n}" for n in range(controllers if has_own else 0)]
        self.controller_addrs = [
            f"{address_of(network, name)}:{free_broker_port()}" for name in names
        ]
        peers = ";".join(f"n{n}-{addr}" for n, addr in enumerate(self.controller_addrs))
        self.controllers: list[tuple[Program, dict[str, Any]]] = []
        for number, name in enumerate(names):
            place = folder / name
            place.mkdir()
            program = Program(
                "core_broker.controller", place, controller_root, _prefix(network, name)
            )
            self._undo.callback(program.kill)
            values = {
                **own,
                "bind_address": address_of(network, name),
                "controller_d_leger_peers": peers,
                "controller_d_leger_self_id": f"n{number}",
                "controller_store_path": place / "raft",
                "scan_not_active_broker_interval": 1_000,
                "scan_inactive_master_interval": 1_000,
                **controller_settings,
            }
            self.controllers.append((program, values))
        for program, values in self.controllers:
            program.begin(values)
        for program, _ in self.controllers:
            program.wait_ready()
        common = {
            **own,
            "broker_name": BROKER_NAME,
            "namesrv_addr": self.namesrv_addr,
            "wait_time_mills_in_send_queue": 20_000,
            **SMALL_STORE,
            "mapped_file_size_commit_log": SEGMENT_BYTES,
        }
        addrs = controller_addr or ";".join(self.controller_addrs)
        common |= _group(replicas) if is_dledger else _under_controllers(addrs)
        common |= settings
        assert all(java_key(name) for name in common)
        own_ids = [{"d_leger_self_id": f"n{n}"} if is_dledger else {} for n in range(replicas)]
        self.replicas = [
            Replica(folder / f"replica-{n}", common | own, network) for n, own in enumerate(own_ids)
        ]
        for replica in self.replicas:
            self._undo.callback(replica.kill)

    def replace_controller(self, number: int, root: Path) -> Program:
        """Stop a controller with SIGTERM, and start it from another source tree."""
        program, values = self.controllers[number]
        assert program.stop() == 0
        program = Program("core_broker.controller", program.output.parent, root)
        self._undo.callback(program.kill)
        self.controllers[number] = (program, values)
        program.start(values)
        return program

    async def whole(self, timeout_s: float) -> Replica:
        """Wait until all replicas are in the sync-state set of one master; return the master."""
        master = await eventually(self._whole_master, timeout_s)
        assert master is not None
        return master

    async def _whole_master(self) -> Replica | None:
        if not all(each.is_running for each in self.replicas):
            return None
        found = [await asyncio.to_thread(each.varz) for each in self.replicas]
        states = [each.get("replica_set", {}) for each in found]
        # A master that was cut off has the newest set that it knew, and an older epoch.
        masters = [number for number, each in enumerate(states) if each.get("role") == "master"]
        if len(masters) != 1 or len({each.get("epoch") for each in states}) != 1:
            return None
        is_whole = len(states[masters[0]]["sync_state_set"]) == len(self.replicas)
        return self.replicas[masters[0]] if is_whole else None

    def __enter__(self) -> "ReplicaSet":
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()
