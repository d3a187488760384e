"""A real name server and a real broker in separate processes, for tests.

    with Cluster(tmp_path, message_delay_level="1s 2s") as cluster:
        cluster.broker_addr

The broker keeps port and store over `kill_broker` and `restart_broker`. The programs' output goes
to files in the folder; the error of a failed start quotes the output.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from core_broker.config import java_key, property_text
from tests.support.processes import STOP_TIMEOUT_S, kill_program

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 90.0
POLL_S = 0.02

READY = "boot success"
#: Store settings with small files, so that a broker starts fast and needs little disk space.
SMALL_STORE: dict[str, Any] = {
    "mapped_file_size_commit_log": 16 * 1024 * 1024,
    "mapped_file_size_consume_queue": 20 * 1000,
    "max_hash_slot_num": 5000,
    "max_index_num": 20_000,
}
#: Ports below the system's ephemeral ones, divided into slices for the workers of pytest-xdist.
PORTS = range(12_000, 32_000)
SLICES_MAX = 20
#: Ports that are not chosen again soon: programs start on them after the choice.
_chosen: deque[int] = deque(maxlen=300)
#: For tests in which no send may be refused: a busy machine may stop a broker during a write.
PATIENT: dict[str, Any] = {"os_page_cache_busy_time_out_mills": 60_000}


class Program:
    """A program that prints its ports and a ready line; `prefix` begins its command line."""

    def __init__(
        self,
        module: str,
        folder: Path,
        root: Path = ROOT,
        prefix: Sequence[str] = (),
        *,
        python: str = sys.executable,
    ) -> None:
        self.module = module
        self._prefix = prefix
        self._python = python
        self._root = root
        self.output = folder / f"{module}.log"
        self._settings_file = folder / f"{module}.conf"
        self._process: subprocess.Popen[bytes] | None = None
        self._read_from = 0

    def start(self, settings: dict[str, Any]) -> None:
        """Start the program and wait for the ready line."""
        self.begin(settings)
        self.wait_ready()

    def begin(self, settings: dict[str, Any]) -> None:
        """Start the program without waiting."""
        lines = [f"{java_key(name)}={property_text(value)}\n" for name, value in settings.items()]
        self._settings_file.write_text("".join(lines))
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ROCKETMQ_") and name != "NAMESRV_ADDR"
        }
        self._read_from = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._prefix, self._python, "-m", self.module, "-c", str(self._settings_file)],
                cwd=self._root,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_ready(self) -> None:
        """Wait for the ready line."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while READY not in self.printed:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{self.module} did not start:\n{self.printed}")
            time.sleep(POLL_S)

    @property
    def printed(self) -> str:
        """The output since the last start."""
        return self.output.read_bytes()[self._read_from :].decode()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def port(self, kind: str) -> int:
        """The port of the listener with `kind` in parentheses in its line."""
        for line in self.printed.splitlines():
            if line.startswith("listens on ") and f"({kind})" in line:
                return int(line.split(" (")[0].rpartition(":")[2])
        raise AssertionError(f"{self.module} printed no listener {kind!r}:\n{self.printed}")

    def stop(self) -> int:
        """Stop the program with SIGTERM; returns the exit code."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait for the end of the program; returns the exit code, 0 for a stopped program."""
        process = self._process
        if process is None:
            return 0
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            kill_program(process)
            raise AssertionError(f"{self.module} did not stop:\n{self.printed}") from None
        self._process = None
        return code


class Cluster:
    """A name server and a broker on free ports of the loopback interface.

    `root` is the source tree of both programs, `python` their interpreter. Settings
    of `both` are for name server and broker.
    """

    #: Arguments of a client that the servers admit: `rpc_hooks` and `tls`.
    client_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        folder: Path,
        *,
        root: Path = ROOT,
        python: str = sys.executable,
        both: Mapping[str, Any] = MappingProxyType({}),
        **broker_settings: Any,
    ) -> None:
        self.namesrv = Program("namesrv", folder, root, python=python)
        self.broker = Program("core_broker", folder, root, python=python)
        with ExitStack() as undo:
            undo.callback(self.namesrv.kill)
            self.namesrv.start(
                {
                    "listen_port": 0,
                    "http_port": 0,
                    "bind_address": "127.0.0.1",
                    "kv_config_path": folder / "kvConfig.json",
                    "config_store_path": folder / "namesrv.properties",
                    **both,
                }
            )
            self.namesrv_addr = f"127.0.0.1:{self.namesrv.port('remoting')}"
            self._settings = {
                "broker_name": "broker-a",
                "broker_ip1": "127.0.0.1",
                "bind_address": "127.0.0.1",
                "listen_port": free_broker_port(),
                "http_port": 0,
                "namesrv_addr": self.namesrv_addr,
                "store_path_root_dir": folder / "store",
                **SMALL_STORE,
                # On a busy test machine requests wait longer than the default of 200 ms, and the
                # broker would refuse them. Tests of flow control set their own value.
                "wait_time_mills_in_send_queue": 20_000,
                **both,
                **broker_settings,
            }
            self.broker.start(self._settings)
            undo.pop_all()
        self.broker_addr = f"127.0.0.1:{self.broker.port('remoting')}"

    @property
    def http_ports(self) -> dict[str, int]:
        """The side ports, by `namesrv` and `broker`."""
        kind = "http: /readyz /metrics /varz"
        return {"namesrv": self.namesrv.port(kind), "broker": self.broker.port(kind)}

    @property
    def broker_settings(self) -> dict[str, Any]:
        """The settings of the broker, for further brokers of the cluster."""
        return dict(self._settings)

    @property
    def store_folder(self) -> Path:
        """storePathRootDir of the broker."""
        return Path(self._settings["store_path_root_dir"])

    def kill_broker(self) -> None:
        """kill -9 the broker."""
        self.broker.kill()

    def begin_broker(self) -> None:
        """Start the broker again without waiting."""
        self.broker.begin(self._settings)

    def stop_broker(self) -> int:
        """Stop the broker with SIGTERM; returns the exit code."""
        return self.broker.stop()

    def restart_broker(self, **settings: Any) -> None:
        """Stop the broker with SIGTERM if it runs, and start it with changed settings."""
        self.broker.stop()
        self._settings |= settings
        self.broker.start(self._settings)

    def stop(self) -> None:
        """Stop broker and name server with SIGTERM."""
        try:
            self.broker.stop()
        finally:
            self.namesrv.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def free_broker_port() -> int:
    """A free port for the broker, with free ports for producers (VIP) and slaves beside it.

    The port is below the system's ephemeral ports, so that it stays free until a broker restarts.
    Neither another test worker nor the last calls have chosen any of the three.
    """
    mine = _slice_of_worker()
    while True:
        # secrets, because the random module has the same seed in every test worker.
        port = secrets.choice(mine[2:-1])
        if not {port - 2, port, port + 1}.isdisjoint(_chosen):
            continue
        with socket.socket() as main, socket.socket() as vip, socket.socket() as replication:
            try:
                main.bind(("127.0.0.1", port))
                vip.bind(("127.0.0.1", port - 2))
                replication.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        _chosen.extend((port - 2, port, port + 1))
        return port


def _slice_of_worker() -> range:
    """The ports of this worker of pytest-xdist; without workers, all ports."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    slices = min(int(count), SLICES_MAX)
    size = len(PORTS) // slices
    start = int(worker) % slices * size
    return PORTS[start : start + size]
