"""deploy/systemd/rolling-restart.sh on two brokers under load: nothing acknowledged is lost.

A program in the place of systemctl starts and stops the brokers: no systemd runs in the tests.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core_broker.client import (
    AdminClient,
    ConsumerSettings,
    ConsumeStatus,
    Producer,
    PushConsumer,
)
from core_broker.config import java_key, property_text
from core_broker.errors import GantryError
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import ConsumeFromWhere, TopicConfig
from tests.support.cluster import PATIENT, ROOT, SMALL_STORE, Cluster, free_broker_port

SCRIPT = ROOT / "deploy" / "systemd" / "rolling-restart.sh"
BROKERS = ("broker-a", "broker-b")
TOPIC, GROUP = "rolling", "rolling-readers"
DEADLINE_S = 240
POLL_S = 0.05
PAUSE_S = 0.005

pytestmark = pytest.mark.timeout(400)

SYSTEMCTL = """\
#!{python}
import os, pathlib, subprocess, sys, time, psutil
action, name = sys.argv[1], sys.argv[-1].removeprefix("gantry-broker@").removesuffix(".service")
folder = pathlib.Path(os.environ["GANTRY_ETC"])
state = folder / f"{{name}}.pid"
def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
pid = int(state.read_text()) if state.exists() else 0
if action == "is-failed":
    sys.exit(is_running(pid))
if pid:
    os.kill(pid, 15)
    while is_running(pid):
        time.sleep(0.02)
with open(folder / f"{{name}}.log", "ab") as log:
    command = [sys.executable, "-m", "core_broker", "-c", str(folder / f"{{name}}.conf")]
    begun = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
state.write_text(str(begun.pid))
"""


class Machine:
    """The settings of two brokers in /etc/gantry, and their processes."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        self.namesrv_addr = cluster.namesrv_addr
        programs = folder / "bin"
        programs.mkdir()
        systemctl = programs / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(python=sys.executable))
        systemctl.chmod(0o700)
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("ROCKETMQ_")},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "NAMESRV_ADDR": self.namesrv_addr,
            "GANTRY_ETC": str(folder),
            "GANTRY_BIN": str(Path(sys.executable).parent),
            "ROUTE_SECONDS": "0",
            "DRAIN_SECONDS": str(DEADLINE_S),
            "READY_SECONDS": str(DEADLINE_S),
        }
        for name in BROKERS:
            settings = {
                **SMALL_STORE,
                **PATIENT,
                "broker_name": name,
                "broker_ip1": "127.0.0.1",
                "bind_address": "127.0.0.1",
                "listen_port": free_broker_port(),
                "http_port": free_broker_port(),
                "namesrv_addr": self.namesrv_addr,
                "store_path_root_dir": folder / name,
                "wait_time_mills_in_send_queue": 20_000,
            }
            lines = [f"{java_key(key)}={property_text(text)}\n" for key, text in settings.items()]
            (folder / f"{name}.conf").write_text("".join(lines))

    def pids(self) -> dict[str, int]:
        return {
            name: int(file.read_text())
            for name in BROKERS
            if (file := self.folder / f"{name}.pid").exists()
        }

    def logs(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self.folder.glob("*.log")))

    async def run(self, *command: str | Path) -> str:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, f"{output.decode()}\n{self.logs()}"
        return output.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A name server; the cluster's own broker is stopped."""
    (tmp_path / "cluster").mkdir()
    (tmp_path / "etc").mkdir()
    with Cluster(tmp_path / "cluster", broker_name="broker-z") as cluster:
        cluster.stop_broker()
        machine = Machine(tmp_path / "etc", cluster)
        try:
            yield machine
        finally:
            left = [
                psutil.Process(pid) for pid in machine.pids().values() if psutil.pid_exists(pid)
            ]
            for process in left:
                process.terminate()
            for process in psutil.wait_procs(left, DEADLINE_S)[1]:
                process.kill()


class Traffic:
    """One producer and one consumer that work on while the brokers restart."""

    def __init__(self, namesrv_addr: str) -> None:
        self._addr = namesrv_addr
        self.acknowledged: set[bytes] = set()
        self.received: set[bytes] = set()
        self.is_over = asyncio.Event()

    async def send(self) -> None:
        async with Producer("rolling-senders", self._addr) as producer:
            number = 0
            while not self.is_over.is_set():
                number += 1
                body = b"%d" % number
                try:
                    await producer.send(Message(TOPIC, body))
                except GantryError:
                    continue  # not acknowledged
                self.acknowledged.add(body)
                await asyncio.sleep(PAUSE_S)

    def consumer(self) -> PushConsumer:
        settings = ConsumerSettings(
            commit_interval_s=0.1, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        consumer = PushConsumer(GROUP, self._addr, settings=settings)
        consumer.subscribe(TOPIC)

        @consumer.listener
        async def take(messages: list[MessageExt]) -> ConsumeStatus:
            self.received |= {message.body for message in messages}
            return ConsumeStatus.CONSUME_SUCCESS

        return consumer


async def topic_perms(admin: AdminClient) -> dict[str, int]:
    try:
        queues = (await admin.topic_route(TOPIC)).queue_datas
    except GantryError:
        return {}
    return {each.broker_name: each.perm for each in queues}


async def until_registered(admin: AdminClient) -> dict[str, str]:
    """Wait for both brokers; return their addresses."""
    while not set(BROKERS) <= set(table := (await admin.cluster_info()).broker_addr_table):
        await asyncio.sleep(POLL_S)
    return {name: table[name].broker_addrs[0] for name in BROKERS}


async def test_two_brokers_restart_under_load_without_a_loss(machine: Machine) -> None:
    async with AdminClient(machine.namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
        for name in BROKERS:
            await machine.run("systemctl", "start", f"gantry-broker@{name}")
        before = machine.pids()
        for addr in (await until_registered(admin)).values():
            await admin.create_topic(addr, TopicConfig(topic_name=TOPIC))
        traffic = Traffic(machine.namesrv_addr)
        sending = asyncio.create_task(traffic.send())
        async with traffic.consumer():
            while not traffic.received:
                await asyncio.sleep(POLL_S)
            printed = await machine.run(SCRIPT, *BROKERS)
            sent_before = len(traffic.acknowledged)
            while len(traffic.acknowledged) == sent_before:  # sends go on
                await asyncio.sleep(POLL_S)
            traffic.is_over.set()
            await sending
            while traffic.acknowledged - traffic.received:
                await asyncio.sleep(POLL_S)
        for name in BROKERS:
            assert f"{name} is drained" in printed
            assert f"{name} runs again" in printed
            assert machine.pids()[name] != before[name]
        assert await topic_perms(admin) == dict.fromkeys(BROKERS, 6), "writable after the restart"
