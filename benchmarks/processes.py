"""The processes under measurement, name server and broker, with metrics from /proc."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from core_broker.remoting.client import RpcHook
from tests.support.cluster import free_broker_port

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
COMMON = "bindAddress=127.0.0.1\n"


@dataclass(slots=True)
class Measured:
    """A running process and its time to the ready line."""

    process: "subprocess.Popen[Any]"
    start_seconds: float

    def cpu_seconds(self) -> float:
        """CPU time used so far, user and system."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def disk_bytes_read(self) -> int:
        """Bytes read from disks for the process."""
        return int(psutil.Process(self.process.pid).io_counters().read_bytes)

    def memory_mb(self) -> dict[str, float]:
        """Resident memory: anonymous, file-backed, and the sum."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
        total, own = kib["Rss"], kib["Anonymous"]
        return {
            "anon": round(own / 1024, 1),
            "file": round((total - own) / 1024, 1),
            "total": round(total / 1024, 1),
        }

    def pause(self) -> None:
        """Stop the process (SIGSTOP), so that it takes no CPU time from others."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process (SIGCONT)."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Terminate the process; kill it after a timeout."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        finally:
            self.process.kill()
            if self.process.stdout is not None:
                self.process.stdout.close()


@dataclass(slots=True)
class Cluster:
    """One name server and one broker."""

    namesrv: Measured
    broker: Measured
    broker_addr: str
    namesrv_addr: str
    #: Address of the broker's side port, "" for a broker without side port.
    side_addr: str = ""
    #: Hooks of the benchmark's own questions, for a broker with access control.
    rpc_hooks: Sequence[RpcHook] = ()
    #: Starts the broker again on its store.
    start_broker: Callable[[], Measured] | None = None
    #: A slave of the broker, and its address; None without one.
    slave: Measured | None = None
    slave_addr: str = ""

    @property
    def processes(self) -> list[Measured]:
        """All processes."""
        return [self.broker, self.namesrv, *([] if self.slave is None else [self.slave])]

    def kill_and_restart(self) -> float:
        """Kill the broker with SIGKILL, start it again; returns the seconds until it is ready."""
        assert self.start_broker is not None
        self.broker.process.kill()
        self.broker.process.wait()
        self.broker = self.start_broker()
        return self.broker.start_seconds

    def store_figures(self) -> dict[str, Any]:
        """The store's values in /varz of a Gantry broker."""
        with urllib.request.urlopen(f"http://{self.side_addr}/varz", timeout=10) as answer:
            figures: dict[str, Any] = json.load(answer)["store"]
        return figures

    @property
    def start_seconds(self) -> float:
        """Start time of name server and broker, one after the other."""
        return self.namesrv.start_seconds + self.broker.start_seconds

    def memory_mb(self) -> dict[str, dict[str, float]]:
        """Resident memory of each process and of both together."""
        each = {"namesrv": self.namesrv.memory_mb(), "broker": self.broker.memory_mb()}
        both = {
            kind: round(sum(process[kind] for process in each.values()), 1)
            for kind in ("anon", "file", "total")
        }
        return {**each, "both": both}


@contextmanager
def alone(cluster: Cluster, all_of_them: Iterable[Cluster]) -> Iterator[None]:
    """Stop all other clusters during the block."""
    others = [each for each in all_of_them if each is not cluster]
    resting = [process for each in others for process in each.processes]
    for process in resting:
        process.pause()
    try:
        yield
    finally:
        for process in resting:
            process.resume()


@contextmanager
def running(folder: Path, settings: str = "") -> Iterator[Cluster]:
    """Start both on free ports with their data in `folder`; stops them at the end.

    `settings` are additional lines of the broker's settings file.
    """
    with running_namesrv(folder) as (namesrv, namesrv_addr):
        port, (side_port,) = free_broker_port(), free_ports(1)
        conf = _broker_conf(folder, port, side_port, namesrv_addr, settings)

        def start_broker() -> Measured:
            return _start("core_broker", conf)

        cluster = Cluster(
            namesrv,
            start_broker(),
            f"127.0.0.1:{port}",
            namesrv_addr,
            f"127.0.0.1:{side_port}",
            start_broker=start_broker,
        )
        try:
            yield cluster
        finally:
            cluster.broker.stop()


@contextmanager
def running_slave(folder: Path, cluster: Cluster) -> Iterator[None]:
    """Give the broker of a cluster a slave with its data in `folder`; stops it at the end."""
    port, (side_port,) = free_broker_port(), free_ports(1)
    settings = "brokerRole=SLAVE\nbrokerId=1\n"
    conf = _broker_conf(folder, port, side_port, cluster.namesrv_addr, settings)
    cluster.slave, cluster.slave_addr = _start("core_broker", conf), f"127.0.0.1:{port}"
    try:
        yield
    finally:
        cluster.slave.stop()
        cluster.slave = None


@contextmanager
def running_brokers(folder: Path, count: int) -> Iterator[list[Cluster]]:
    """Start brokers that share a name server, each with its data in a folder of its own; yields one
    cluster for each broker, and stops them at the end.
    """
    with running_namesrv(folder) as (namesrv, namesrv_addr):
        clusters: list[Cluster] = []
        try:
            for number in range(count):
                data = folder / str(number)
                data.mkdir()
                port, (side_port,) = free_broker_port(), free_ports(1)
                name = f"bench-{number}"
                conf = _broker_conf(data, port, side_port, namesrv_addr, "", name)
                broker = _start("core_broker", conf)
                clusters.append(Cluster(namesrv, broker, f"127.0.0.1:{port}", namesrv_addr))
            yield clusters
        finally:
            for cluster in clusters:
                cluster.broker.stop()


def _broker_conf(
    folder: Path,
    port: int,
    side_port: int,
    namesrv_addr: str,
    settings: str,
    name: str = "bench",
) -> Path:
    conf = folder / "broker.conf"
    conf.write_text(
        f"{COMMON}httpPort={side_port}\nlistenPort={port}\nbrokerName={name}\n"
        f"brokerIP1=127.0.0.1\nbrokerIP2=127.0.0.1\n"
        f"storePathRootDir={folder}/store\nnamesrvAddr={namesrv_addr}\n"
        # Requests queue under full load; the benchmark does not measure rejected requests.
        f"waitTimeMillsInSendQueue=60000\n{settings}"
    )
    return conf


@contextmanager
def running_namesrv(folder: Path) -> Iterator[tuple[Measured, str]]:
    """Start a name server; yields the process and its address, and stops it at the end."""
    (port,) = free_ports(1)
    conf = folder / "namesrv.conf"
    conf.write_text(f"{COMMON}httpPort=0\nlistenPort={port}\nkvConfigPath={folder}/kvConfig.json\n")
    namesrv = _start("namesrv", conf)
    try:
        yield namesrv, f"127.0.0.1:{port}"
    finally:
        namesrv.stop()


def _start(module: str, conf: Path) -> Measured:
    # An installed program has its bytecode; a changed source tree gets it with the first start.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ROCKETMQ_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    log = conf.with_suffix(".log")
    began = time.perf_counter()
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "-c", str(conf)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
    assert process.stdout is not None
    for line in process.stdout:
        if "boot success" in line:
            return Measured(process, time.perf_counter() - began)
    raise SystemExit(f"{module} did not start:\n{log.read_text()[-2000:]}")


def free_ports(count: int) -> list[int]:
    """Ports without a listener at the moment."""
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports
