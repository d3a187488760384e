"""Brokers side by side on one machine: Gantry, with and without its kernel, and Apache RocketMQ.

Java runs with the options of RocketMQ's own script, except a heap of 2 GiB instead of 8 GiB without
pre-touch: the memory metrics show the memory in use.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import Cluster, Measured, free_ports
from tests.compat import installing
from tests.compat.java_broker import JavaBroker, JavaProgram

JVM: Final = (
    *("-server", "-Xms2g", "-Xmx2g", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=16m"),
    *("-XX:G1ReservePercent=25", "-XX:InitiatingHeapOccupancyPercent=30"),
    *("-XX:SoftRefLRUPolicyMSPerMB=0", "-XX:MaxDirectMemorySize=4g"),
)
NAMESRV_JVM: Final = ("-server", "-Xms512m", "-Xmx512m")
#: RocketMQ's defaults, in place of the smaller test defaults of the broker class.
DEFAULTS: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 1024**3,
    "mapped_file_size_consume_queue": 6_000_000,
    "max_hash_slot_num": 5_000_000,
    "max_index_num": 20_000_000,
    # Requests queue under full load; the benchmark does not measure rejected requests.
    "wait_time_mills_in_send_queue": 60_000,
}


@contextmanager
def running_java(
    version: str, folder: Path, conf: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Cluster]:
    """Start a Java name server and broker with their data in `folder`; stops them at the end.

    `conf` are files of the broker's conf folder, by name.
    """
    (port,) = free_ports(1)
    addr = f"127.0.0.1:{port}"
    namesrv = JavaProgram(
        folder / "namesrv",
        "org.apache.rocketmq.namesrv.NamesrvStartup",
        installing.java_program_classpath("namesrv", version),
        {"listenPort": str(port), "kvConfigPath": str(folder / "kvConfig.json")},
        NAMESRV_JVM,
    )
    broker = JavaBroker(version, folder, folder / "store", addr, jvm=JVM, **DEFAULTS | settings)
    for name, text in (conf or {}).items():
        (broker.home / "conf" / name).write_text(text)
    try:
        started_namesrv = _start(namesrv)
        start_broker = partial(_start, broker)
        yield Cluster(started_namesrv, start_broker(), broker.addr, addr, start_broker=start_broker)
    finally:
        broker.stop()
        namesrv.stop()


@contextmanager
def running_java_slave(
    version: str, folder: Path, cluster: Cluster, **settings: Any
) -> Iterator[None]:
    """Give the broker of a cluster a slave with its data in `folder`; stops it at the end."""
    role = {"broker_role": "SLAVE", "broker_id": 1}
    broker = JavaBroker(
        version,
        folder,
        folder / "store",
        cluster.namesrv_addr,
        jvm=JVM,
        **DEFAULTS | settings | role,
    )
    try:
        cluster.slave, cluster.slave_addr = _start(broker), broker.addr
        yield
    finally:
        broker.stop()
        cluster.slave = None


def _start(program: JavaProgram) -> Measured:
    began = time.perf_counter()
    program.start()
    assert program.process is not None
    return Measured(program.process, time.perf_counter() - began)
