"""Java 5.3.3 and Gantry under one controller: replicas of one set, in both directions.

`JAVA_FAILOVERS` sets how often a master is killed under load. With more than the default, Java
brokers also run under three controllers of Gantry, whose leaders are killed.
"""

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import GantryError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.compat import installing
from tests.compat.broker_state import eventually
from tests.compat.java_broker import JavaBroker, JavaController, java_replica
from tests.support.cluster import free_broker_port
from tests.support.history import History
from tests.support.load import Load, read_replica
from tests.support.replica_set import BROKER_NAME, SEGMENT_BYTES, Replica, ReplicaSet

VERSION = installing.JAVA5_VERSION
SECONDS_MAX = 120
MESSAGES = 300
FAILOVERS_DEFAULT = 2
FAILOVERS = int(os.environ.get("JAVA_FAILOVERS", str(FAILOVERS_DEFAULT)))

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + (6 + 2 * FAILOVERS) * SECONDS_MAX)

Broker = JavaBroker | Replica


class Group:
    """The brokers of a set, their controllers, and what producers know."""

    def __init__(self, controllers: Sequence[str], brokers: list[Broker]) -> None:
        self._controllers = controllers
        self.brokers = brokers
        self.history = History()
        self._dice = random.Random(1)

    def ask(self, command: RemotingCommand) -> RemotingCommand | None:
        """The answer of the leading controller; None without one."""

        async def asked(addr: str) -> RemotingCommand:
            client = RemotingClient(name="test")
            try:
                return await client.invoke(addr, command, SECONDS_MAX * 1000)
            finally:
                await client.close()

        for addr in self._controllers:
            with suppress(GantryError):
                answer = asyncio.run(asked(addr))
                if answer.code != ResponseCode.CONTROLLER_NOT_LEADER:
                    return answer
        return None

    def replicas(self) -> dict[str, Any]:
        """The entry of the set at the controllers; empty without an answer."""
        body = json.dumps([BROKER_NAME]).encode()
        code = RequestCode.CONTROLLER_GET_SYNC_STATE_DATA
        answer = self.ask(RemotingCommand.request(code, None, body))
        table = json.loads(answer.body)["replicasInfoTable"] if answer and answer.body else {}
        entry: dict[str, Any] = table.get(BROKER_NAME, {})
        return entry

    def whole(self) -> Broker:
        """Wait until all brokers are in sync; return the master."""

        def members() -> int:
            return len(self.replicas().get("inSyncReplicas", ()))

        eventually(lambda: members() == len(self.brokers), "all are in sync", SECONDS_MAX)
        return self.master()

    def master(self, before: Broker | None = None) -> Broker:
        """Wait for a master, another one than `before`."""
        by_addr = {broker.addr: broker for broker in self.brokers if broker is not before}
        eventually(lambda: self.replicas().get("masterAddress") in by_addr, "a master", SECONDS_MAX)
        return by_addr[self.replicas()["masterAddress"]]

    def fill(self, master: Broker) -> None:
        """Send messages to a master, which may not know yet that it is one."""
        known = self.history.acknowledged

        async def send() -> None:
            load = Load(master.addr, self.history, self._dice)
            running = asyncio.create_task(load.run())
            await load.acknowledged(MESSAGES, SECONDS_MAX)
            load.stop()
            await running

        asyncio.run(send())
        assert self.history.acknowledged >= known + MESSAGES

    def fail_over(self) -> Broker:
        """Kill the master, fill its successor, and start it again; return the successor."""
        killed = self.whole()
        killed.kill()
        successor = self.master(before=killed)
        self.fill(successor)
        killed.start()
        self.whole()
        return successor

    def elect(self, broker: Broker) -> None:
        """Let an administrator make a broker the master."""
        self.whole()
        members = self.replicas()["inSyncReplicas"]
        (broker_id,) = [one["brokerId"] for one in members if one["brokerAddress"] == broker.addr]

        fields = {
            "clusterName": "DefaultCluster",
            "brokerName": BROKER_NAME,
            "brokerId": str(broker_id),
            "designateElect": "true",
        }
        if self.replicas()["masterAddress"] != broker.addr:
            answer = self.ask(RemotingCommand.request(RequestCode.CONTROLLER_ELECT_MASTER, fields))
            assert answer is not None
            assert answer.code == 0, answer.remark
        eventually(
            lambda: self.replicas()["masterAddress"] == broker.addr, "is elected", SECONDS_MAX
        )

    def check(self) -> None:
        """Compare the replicas of Gantry with what producers know, and with each other."""
        self.whole()
        own = [broker for broker in self.brokers if isinstance(broker, Replica)]

        def ends() -> set[int]:
            varz = [each.varz() for each in own]
            log_ends = {each["store"]["commit_log_max_offset"] for each in varz}
            return log_ends | {each["replica_set"]["confirm_offset"] for each in varz}

        eventually(lambda: len(ends()) == 1, "all have confirmed the same end", SECONDS_MAX)
        for replica in own:
            verdict = self.history.check(asyncio.run(read_replica(replica.addr)))
            assert verdict.is_clean, (replica.name, verdict.problems[:20])
        epochs = [replica.varz()["replica_set"]["epochs"] for replica in own]
        assert epochs == [epochs[0]] * len(epochs)


@pytest.fixture
def undo(record_property: Callable[[str, object], None]) -> Iterator[ExitStack]:
    record_property("client", f"java-broker-{VERSION}")
    try:
        installing.java_broker_classpath(VERSION)
        installing.java_program_classpath("controller", VERSION)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    with ExitStack() as stack:
        yield stack


def test_java_and_gantry_are_replicas_of_one_set(tmp_path: Path, undo: ExitStack) -> None:
    replicas = undo.enter_context(ReplicaSet(tmp_path, replicas=2))
    java = java_broker(tmp_path / "java", replicas)
    undo.callback(java.kill)
    group = Group(replicas.controller_addrs, [*replicas.replicas, java])
    for broker in group.brokers:
        broker.start()
    group.fill(group.whole())
    for _ in range(FAILOVERS - 1):
        group.fail_over()
    group.elect(java)
    group.fill(java)
    assert group.fail_over() is not java
    group.check()


@pytest.mark.skipif(FAILOVERS <= FAILOVERS_DEFAULT, reason="minutes; JAVA_FAILOVERS=20 runs it")
def test_java_brokers_under_three_controllers_of_gantry(tmp_path: Path, undo: ExitStack) -> None:
    """Masters and leading controllers are killed in turn; a producer goes on each time."""
    replicas = undo.enter_context(ReplicaSet(tmp_path, replicas=0, controllers=3))
    brokers: list[Broker] = [java_broker(tmp_path / f"java-{n}", replicas) for n in (1, 2)]
    group = Group(replicas.controller_addrs, brokers)
    for broker in brokers:
        undo.callback(broker.kill)
        broker.start()
    group.fill(group.whole())
    for _ in range(FAILOVERS):
        leader = leading(replicas)
        program, settings = replicas.controllers[leader]
        program.kill()
        group.fail_over()
        program.start(settings)


def java_broker(folder: Path, replicas: ReplicaSet) -> JavaBroker:
    """A Java broker of the set that has not started."""
    return java_replica(
        folder,
        replicas.namesrv_addr,
        replicas.controller_addrs,
        mapped_file_size_commit_log=SEGMENT_BYTES,
        wait_time_mills_in_send_queue=20_000,
    )


def leading(replicas: ReplicaSet) -> int:
    """The number of the leading controller."""
    group = Group(replicas.controller_addrs, [])

    def leader() -> str:
        answer = group.ask(RemotingCommand.request(RequestCode.CONTROLLER_GET_METADATA_INFO))
        return "" if answer is None else answer.ext_fields.get("controllerLeaderAddress", "")

    eventually(lambda: leader() in replicas.controller_addrs, "a controller leads", SECONDS_MAX)
    return replicas.controller_addrs.index(leader())


def test_gantry_follows_a_java_controller(tmp_path: Path, undo: ExitStack) -> None:
    controller = JavaController(tmp_path / "controller", 0, [free_broker_port()])
    undo.callback(controller.kill)
    controller.start()
    replicas = undo.enter_context(ReplicaSet(tmp_path, replicas=3, controller_addr=controller.addr))
    group = Group([controller.addr], [*replicas.replicas])
    for broker in group.brokers:
        broker.start()
    group.fill(group.whole())
    for _ in range(FAILOVERS):
        group.fail_over()
    group.elect(next(each for each in group.brokers if each is not group.master()))
    group.fill(group.master())
    group.check()
