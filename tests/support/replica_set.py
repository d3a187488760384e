"""A name server, controllers, and replicas of one broker name, in separate processes."""

import json
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from core_broker.config import java_key
from tests.support.cluster import SMALL_STORE, Program, free_broker_port

SIDE_PORT = "http: /readyz /metrics /varz"
BROKER_NAME = "broker-a"
SEGMENT_BYTES = 1024 * 1024


class Replica:
    """One broker of the set; port and store stay over restarts."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir()
        self.port = free_broker_port()
        self.addr = f"127.0.0.1:{self.port}"
        self.store = folder / "store"
        self.program = Program("core_broker", folder)
        self.settings = settings | {
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
            with urlopen(f"http://127.0.0.1:{port}/varz", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        return {}


class ReplicaSet:
    """Programs on free ports of the loopback interface; use as a context manager.

    With `controller_addr` the replicas use controllers of the test.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        controllers: int = 1,
        controller_addr: str = "",
        **settings: Any,
    ) -> None:
        self._undo = ExitStack()
        own = {"bind_address": "127.0.0.1", "http_port": 0}
        self.namesrv = Program("namesrv", folder)
        self._undo.callback(self.namesrv.kill)
        kept = {"kv_config_path": folder / "kv.json", "config_store_path": folder / "n.properties"}
        self.namesrv.start({"listen_port": 0, **own, **kept})
        self.namesrv_addr = f"127.0.0.1:{self.namesrv.port('remoting')}"
        ports = [] if controller_addr else [free_broker_port() for _ in range(controllers)]
        self.controller_addrs = [f"127.0.0.1:{port}" for port in ports]
        peers = ";".join(f"n{n}-{addr}" for n, addr in enumerate(self.controller_addrs))
        self.controllers: list[tuple[Program, dict[str, Any]]] = []
        for number in range(len(ports)):
            place = folder / f"controller-{number}"
            place.mkdir()
            program = Program("core_broker.controller", place)
            self._undo.callback(program.kill)
            values = {
                **own,
                "controller_d_leger_peers": peers,
                "controller_d_leger_self_id": f"n{number}",
                "controller_store_path": place / "raft",
                "scan_not_active_broker_interval": 1_000,
                "scan_inactive_master_interval": 1_000,
            }
            self.controllers.append((program, values))
        for program, values in self.controllers:
            program.begin(values)
        for program, _ in self.controllers:
            program.wait_ready()
        common = {
            **own,
            "broker_name": BROKER_NAME,
            "broker_ip1": "127.0.0.1",
            "broker_ip2": "127.0.0.1",
            "namesrv_addr": self.namesrv_addr,
            "enable_controller_mode": True,
            "controller_addr": controller_addr or ";".join(self.controller_addrs),
            "all_ack_in_sync_state_set": True,
            "wait_time_mills_in_send_queue": 20_000,
            **SMALL_STORE,
            "mapped_file_size_commit_log": SEGMENT_BYTES,
            **settings,
        }
        assert all(java_key(name) for name in common)
        self.replicas = [Replica(folder / f"replica-{n}", common) for n in range(replicas)]
        for replica in self.replicas:
            self._undo.callback(replica.kill)

    def __enter__(self) -> "ReplicaSet":
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()
