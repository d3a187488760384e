"""A name server and a broker of rocketmq-rust.

The settings are those of its own `distribution/config/broker/broker.toml`, with free ports.
"""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import Cluster, Measured, free_ports
from core_broker.config import java_key
from tests.compat import installing
from tests.support.cluster import free_broker_port

READY_SECONDS_MAX: Final = 60
POLL_SECONDS: Final = 0.02
NAMESRV: Final = """\
rocketmqHome = "{home}"
kvConfigPath = "{home}/kvConfig.json"
configStorePath = "{home}/namesrv.properties"
listenPort = {port}
bindAddress = "127.0.0.1"
"""
BROKER: Final = """\
[broker]
namesrvAddr = "{namesrv_addr}"
brokerIp1 = "127.0.0.1"
brokerIp2 = "127.0.0.1"
listenPort = {port}
storePathRootDir = "{home}/store"
waitTimeMillsInSendQueue = 60000
autoCreateTopicEnable = true
enableSingleTopicRegister = true

[broker.brokerServerConfig]
bindAddress = "127.0.0.1"

[broker.brokerIdentity]
brokerName = "bench"
brokerClusterName = "DefaultCluster"
brokerId = 0

[broker.topicQueueConfig]
defaultTopicQueueNums = 8

[broker.timerWheelConfig]
timerWheelEnable = false

[store]
storePathRootDir = "{home}/store"
brokerRole = "ASYNC_MASTER"
haListenAddress = "127.0.0.1"
haListenPort = {ha_port}
mappedFileSizeCommitLog = 1073741824
mappedFileSizeConsumeQueue = 6000000
timerWheelEnable = false
enableCompaction = true
enableAsyncReput = true
compactionThreadNum = 6
{settings}"""


@contextmanager
def running_rust(
    folder: Path, conf: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Cluster]:
    """Start both with their data in `folder`; stops them at the end.

    `settings` are settings of the store with text values.
    """
    assert not conf, "the Rust broker has no files in a conf folder"
    programs = installing.rust_brokers() / "bin"
    (namesrv_port,) = free_ports(1)
    namesrv_addr = f"127.0.0.1:{namesrv_port}"
    home = folder / "rust"
    home.mkdir()
    (home / "namesrv.toml").write_text(NAMESRV.format(home=home, port=namesrv_port))
    port = free_broker_port()
    lines = "".join(f'{java_key(name)} = "{value}"\n' for name, value in settings.items())
    (home / "broker.toml").write_text(
        BROKER.format(
            namesrv_addr=namesrv_addr,
            port=port,
            ha_port=free_broker_port(),
            home=home,
            settings=lines,
        )
    )

    def start_broker() -> Measured:
        return _start(programs / "rocketmq-broker-rust", home / "broker.toml")

    namesrv = _start(programs / "rocketmq-namesrv-rust", home / "namesrv.toml")
    try:
        cluster = Cluster(
            namesrv, start_broker(), f"127.0.0.1:{port}", namesrv_addr, start_broker=start_broker
        )
        try:
            yield cluster
        finally:
            cluster.broker.stop()
    finally:
        namesrv.stop()


def _start(program: Path, conf: Path) -> Measured:
    """Start a program and wait until it is ready."""
    (health_port,) = free_ports(1)
    environment = {
        **{name: value for name, value in os.environ.items() if "ROCKETMQ" not in name},
        "ROCKETMQ_HOME": str(conf.parent),
        "ROCKETMQ_SECURITY_PROFILE": "development-insecure-loopback",
        "ROCKETMQ_HEALTH_BIND_ADDR": f"127.0.0.1:{health_port}",
        "RUST_LOG": "warn",
    }
    log = conf.with_suffix(".log")
    began = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(program), "-c", str(conf)],
            cwd=conf.parent,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    while not _is_ready(health_port):
        if process.poll() is not None or time.perf_counter() - began > READY_SECONDS_MAX:
            process.kill()
            raise SystemExit(f"{program.name} did not start:\n{log.read_text()[-2000:]}")
        time.sleep(POLL_SECONDS)
    return Measured(process, time.perf_counter() - began)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
