"""Java and Gantry brokers in one DLedger group: each kind leads, hands over, dies, and returns.

By default one Java broker of version 4; with DLEDGER_CHECKS=all one and two of each version.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from core_broker.client.admin import AdminClient
from core_broker.dledger.messages import (
    AnyRequest,
    MetadataRequest,
    MetadataResponse,
    TransferRequest,
    code_of,
    decode,
    encode,
)
from core_broker.errors import GantryError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from tests.compat import installing
from tests.compat.broker_state import eventually
from tests.compat.java_broker import STORE, JavaBroker
from tests.support.cluster import free_broker_port
from tests.support.history import History
from tests.support.load import Load, read_topic
from tests.support.replica_set import SEGMENT_BYTES, Replica, ReplicaSet

SECONDS_MAX = 120
MESSAGES = 300
#: Kills of leaders until a member of the wanted kind leads.
KILLS_MAX = 12
GROUP = "group-a"
EVERY = os.environ.get("DLEDGER_CHECKS") == "all"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 10 * SECONDS_MAX)

Broker = JavaBroker | Replica


class Member:
    """A broker and its place in the group."""

    def __init__(self, number: int, broker: Broker, port: int, store: Path) -> None:
        self.name = f"n{number}"
        self.broker = broker
        self.address = f"127.0.0.1:{port}"
        self.data = store / f"dledger-{self.name}" / "data"
        self.is_java = isinstance(broker, JavaBroker)
        self.is_running = False

    def start(self) -> None:
        """Start the broker."""
        self.broker.start()
        self.is_running = True

    def kill(self) -> None:
        """kill -9."""
        self.broker.kill()
        self.is_running = False

    def ask(self, request: AnyRequest) -> bytes:
        """Send a request to the member; return the body of its answer. Raises GantryError."""

        async def invoke() -> RemotingCommand:
            client = RemotingClient(name="test")
            command = RemotingCommand.request(code_of(request), body=encode(request))
            try:
                return await client.invoke(self.address, command)
            finally:
                await client.close()

        return asyncio.run(invoke()).body

    def state(self) -> MetadataResponse:
        """Leader and term; a Java member tells no term."""
        request = MetadataRequest(group=GROUP, remote_id=self.name)
        return decode(MetadataResponse, self.ask(request))

    def leader(self) -> str | None:
        """Whom the member follows, itself for a leader."""
        try:
            found = self.state().leader_id
        except GantryError:
            return None
        return found if isinstance(found, str) else None

    def log(self) -> bytes:
        """The data files, without the zeros behind their end."""
        return b"".join(file.read_bytes() for file in sorted(self.data.iterdir())).rstrip(b"\0")


class Group:
    """All members, and what producers know."""

    def __init__(self, members: list[Member], namesrv_addr: str) -> None:
        self.members = members
        self._namesrv_addr = namesrv_addr
        self.history = History()
        self._dice = random.Random(1)

    def leader(self) -> Member:
        """Wait until all running members have the same leader, which has registered as the master.

        A Java leader accepts messages before it has counted the messages of its queues (seen with
        4.9.7): their queue offsets are taken twice. It registers afterwards.
        """
        found: list[Member] = []

        def agree() -> bool:
            told = {each.leader() for each in self.members if each.is_running}
            found[:] = [each for each in self.members if each.name in told and each.is_running]
            return len(told) == 1 and len(found) == 1

        eventually(agree, "one leader", SECONDS_MAX)
        addr = found[0].broker.addr
        eventually(lambda: self._master_addr() == addr, "the leader is the master", SECONDS_MAX)
        return found[0]

    def _master_addr(self) -> str | None:
        async def ask() -> str | None:
            async with AdminClient(self._namesrv_addr) as admin:
                brokers = (await admin.cluster_info()).broker_addr_table.values()
                return next((each.master_addr for each in brokers), None)

        with suppress(GantryError):
            return asyncio.run(ask())
        return None

    def fill(self) -> None:
        """Send messages to the leader, which may not accept them yet."""
        known = self.history.acknowledged
        addr = self.leader().broker.addr

        async def send() -> None:
            load = Load(addr, self.history, self._dice)
            running = asyncio.create_task(load.run())
            await load.acknowledged(MESSAGES, SECONDS_MAX)
            load.stop()
            await running

        asyncio.run(send())
        assert self.history.acknowledged >= known + MESSAGES

    def die(self) -> None:
        """Kill the leader under load, and start it again when another one leads."""
        leader = self.leader()

        async def send() -> None:
            load = Load(leader.broker.addr, self.history, self._dice)
            running = asyncio.create_task(load.run())
            await load.acknowledged(MESSAGES, SECONDS_MAX)
            await asyncio.to_thread(leader.kill)
            await running

        asyncio.run(send())
        assert self.leader() is not leader
        leader.start()

    def hand_over(self) -> None:
        """Let the leader hand over to a member of the other kind.

        A target that loses the leadership at once, or a leader that does, is asked again.
        """
        first = self.leader()
        target = next(each for each in self.members if each.is_java is not first.is_java)

        def is_done() -> bool:
            leader = self.leader()
            if leader is target:
                return True
            with suppress(GantryError):
                terms = [each.state().term for each in self.members if not each.is_java]
                request = TransferRequest(
                    group=GROUP,
                    remote_id=leader.name,
                    term=max(terms),
                    transfer_id=leader.name,
                    transferee_id=target.name,
                )
                leader.ask(request)
            return False

        eventually(is_done, f"{first.name} hands over to {target.name}", SECONDS_MAX)

    def let_java_lead(self) -> None:
        """Let a Java member have more than all running members of Gantry, which vote sooner."""
        leader = self.leader()
        if leader.is_java:
            return
        others = [each for each in self.members if not each.is_java and each is not leader]
        for each in others:
            each.kill()
        self.fill()
        leader.kill()
        for each in others:
            each.start()
        assert self.leader().is_java
        leader.start()

    def let_gantry_lead(self) -> None:
        """Kill Java leaders until a member of Gantry leads."""
        for _ in range(KILLS_MAX):
            if not self.leader().is_java:
                return
            self.die()
        raise AssertionError("no member of Gantry leads")

    def check(self) -> None:
        """Compare the members with each other, and those of Gantry with what producers know.

        A Java member that returned with messages which no other member had keeps their units in its
        consume queues (seen with 5.3.3): its data files are right, and its pulls are not.
        """
        self.fill()

        def are_equal() -> bool:
            logs = [each.log() for each in self.members]
            return logs == [logs[0]] * len(logs)

        eventually(are_equal, "all members have the same data files", SECONDS_MAX)
        for member in (each for each in self.members if not each.is_java):

            def is_clean(addr: str = member.broker.addr) -> bool:
                return self.history.check(asyncio.run(read_topic(addr))).is_clean

            eventually(is_clean, f"{member.name} has all messages", SECONDS_MAX)


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS if EVERY else ["4.9.7"])
def version(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> str:
    found = str(request.param)
    record_property("client", f"java-broker-{found}")
    try:
        installing.java_broker_classpath(found)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    return found


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("java_count", [1, 2] if EVERY else [1])
def test_java_and_gantry_are_members_of_one_group(
    tmp_path: Path, undo: ExitStack, version: str, java_count: int
) -> None:
    ports = [free_broker_port() for _ in range(3)]
    settings = {
        "enable_d_leger_commit_log": True,
        "d_leger_group": GROUP,
        "d_leger_peers": ";".join(f"n{n}-127.0.0.1:{port}" for n, port in enumerate(ports)),
    }
    own = ReplicaSet(tmp_path, 3 - java_count, is_dledger=True, **settings)
    replicas = undo.enter_context(own)
    members = [
        Member(n, replica, ports[n], replica.store) for n, replica in enumerate(replicas.replicas)
    ]
    for number in range(len(members), 3):
        folder = tmp_path / f"java-{number}"
        java = JavaBroker(
            *(version, folder, folder / "store", replicas.namesrv_addr),
            **STORE | settings | {"mapped_file_size_commit_log": SEGMENT_BYTES},
            d_leger_self_id=f"n{number}",
        )
        undo.callback(java.kill)
        members.append(Member(number, java, ports[number], folder / "store"))
    group = Group(members, own.namesrv_addr)
    for member in members:
        member.start()
    group.fill()
    for let_lead in (group.let_java_lead, group.let_gantry_lead):
        let_lead()
        group.fill()
        group.die()
        group.fill()
    for _ in range(2):
        group.hand_over()
        group.fill()
    group.check()


def test_each_kind_starts_on_the_files_of_the_other(
    tmp_path: Path, undo: ExitStack, version: str
) -> None:
    port = free_broker_port()
    settings = {
        "enable_d_leger_commit_log": True,
        "d_leger_group": GROUP,
        "d_leger_peers": f"n0-127.0.0.1:{port}",
        "d_leger_self_id": "n0",
    }
    replicas = undo.enter_context(ReplicaSet(tmp_path, 1, is_dledger=True, **settings))
    (own,) = replicas.replicas
    java = JavaBroker(
        *(version, tmp_path / "java", own.store, replicas.namesrv_addr),
        **STORE | settings | {"mapped_file_size_commit_log": SEGMENT_BYTES},
    )
    undo.callback(java.kill)
    group = Group([], replicas.namesrv_addr)
    for broker in (own, java, own, java, own):
        member = Member(0, broker, port, own.store)
        group.members = [member]
        member.start()
        group.fill()
        verdict = group.history.check(asyncio.run(read_topic(broker.addr)))
        assert verdict.is_clean, verdict.problems[:20]
        broker.kill()
