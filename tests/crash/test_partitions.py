"""Partitions of a replica set and its controllers, under load: real processes, real silence.

Each controller and each replica is on a host of its own (tests/support/namespaces.py); producers
reach all of them, also a master that is cut off. No acknowledged message is lost, none is stored
twice, the order of each queue is kept, every epoch has one master and all its messages were
acknowledged by this master, and a master without its slaves acknowledges nothing. `PARTITIONS` sets
how many cuts, `FIRST_SEED` where the random moments begin.
"""

import asyncio
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from core_broker.errors import GantryError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.controller import GetMetaDataResponseHeader
from tests.support.broker_requests import send_header
from tests.support.eventually import eventually
from tests.support.history import History
from tests.support.load import QUEUES, read_replica
from tests.support.namespaces import Network, why_impossible
from tests.support.replica_set import Replica, ReplicaSet, host_names

pytestmark = pytest.mark.crash

PARTITIONS = int(os.environ.get("PARTITIONS", "5"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
REPLICAS, CONTROLLERS = 3, 3
#: Bound of every wait, seconds.
WAIT_S = 180.0
SEND_TIMEOUT_MS = 10_000
#: Pause of a producer after a refusal, seconds.
PAUSE_S = 0.02
#: Acknowledged messages to wait for.
SOME = 50
TOPIC = "T"
#: Which packets are lost: between the master and its slaves, and the master and the controllers.
CUTS = (
    "master",
    "master, outgoing",
    "master from the controllers",
    "leading controller",
    "master, incoming",
    "master from its slaves",
)
TOKEN = "partitions-0123456789"
ELECTED = re.compile(r"This broker is the master of \S+ in epoch (\d+), from")
FAST = {
    "broker_heartbeat_interval": 300,
    "controller_heart_beat_timeout_mills": 3_000,
    "sync_broker_metadata_period": 500,
    "ha_send_heartbeat_interval": 500,
    "ha_housekeeping_interval": 3_000,
    "slave_timeout": 1_000,
}


class Accepted(NamedTuple):
    """An acknowledged message."""

    broker: str
    offset_physical: int
    begun_at: float


class Producers:
    """Send to every replica all the time; only a master accepts."""

    def __init__(self, replicas: Sequence[Replica], dice: random.Random) -> None:
        self.history = History()
        self.accepted: list[Accepted] = []
        self._dice = dice
        self._client = RemotingClient(name="partitions")
        self._tasks = [
            asyncio.create_task(self._run(replica)) for replica in replicas for _ in range(3)
        ]

    async def more(self, others_than: str = "") -> None:
        """Wait until another broker than one has acknowledged more messages."""
        wanted = self._count(others_than) + SOME
        await eventually(lambda: self._count(others_than) >= wanted, WAIT_S)

    def _count(self, others_than: str) -> int:
        return sum(each.broker != others_than for each in self.accepted)

    def accepted_by(self, broker: str, after: float) -> list[Accepted]:
        """The messages that a broker acknowledged, and that were sent after a time."""
        return [each for each in self.accepted if each.broker == broker and each.begun_at > after]

    async def stop(self) -> None:
        """End; messages without an answer are unknown."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    async def _run(self, replica: Replica) -> None:
        while True:
            if not await self._send(replica):
                await asyncio.sleep(PAUSE_S)

    async def _send(self, replica: Replica) -> bool:
        number, queue_id = self.history.next_number(), self._dice.randrange(QUEUES)
        body = b"%d " % number + b"x" * self._dice.randrange(300)
        header = send_header(TOPIC, queue_id=queue_id)
        self.history.begin(number, (TOPIC, queue_id), body)
        begun_at = time.monotonic()
        request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, body)
        with suppress(GantryError):
            answer = await self._client.invoke(replica.addr, request, SEND_TIMEOUT_MS)
            if answer.code == ResponseCode.SUCCESS:
                offset = parse_offset_msg_id(answer.ext_fields["msgId"])[2]
                self.accepted.append(Accepted(replica.name, offset, begun_at))
                self.history.stored(number, int(answer.ext_fields["queueOffset"]))
                return True
        return False


class Drill:
    """A set whose links are cut again and again."""

    def __init__(self, network: Network, replicas: ReplicaSet, dice: random.Random) -> None:
        self.set = replicas
        self.producers = Producers(replicas.replicas, dice)
        self._network = network

    async def leader(self) -> str:
        """The name of the host of the leading controller."""
        found = await eventually(self._leader, WAIT_S)
        assert found is not None
        return f"controller-{self.set.controller_addrs.index(found)}"

    async def _leader(self) -> str | None:
        client = RemotingClient(name="leader")
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_METADATA_INFO)
        try:
            for addr in self.set.controller_addrs:
                with suppress(GantryError):
                    answer = await client.invoke(addr, command, 1_000)
                    header = answer.header(GetMetaDataResponseHeader)
                    if header.controller_leader_address == addr:
                        return addr
        finally:
            await client.close()
        return None

    async def cut(self, kind: str) -> None:
        """Cut, wait for what must happen, and heal."""
        master = await self.set.whole(WAIT_S)
        await self.producers.more()
        slaves = [each.name for each in self.set.replicas if each is not master]
        controllers = [f"controller-{number}" for number in range(CONTROLLERS)]
        if kind == "leading controller":
            await self._cut_leader(controllers, [master.name, *slaves])
        else:
            others = {
                "master from the controllers": controllers,
                "master from its slaves": slaves,
            }.get(kind, controllers + slaves)
            if kind != "master, incoming":
                self._network.cut([master.name], others)
            if kind != "master, outgoing":
                self._network.cut(others, [master.name])
            await self._without(master, kind)
        self._network.heal()
        await self.set.whole(WAIT_S)
        await self.producers.more()

    async def _cut_leader(self, controllers: list[str], brokers: list[str]) -> None:
        leader = await self.leader()
        others = [each for each in controllers if each != leader] + brokers
        self._network.cut([leader], others)
        self._network.cut(others, [leader])
        await self.producers.more()
        await eventually(partial(self._has_other_leader, leader), WAIT_S)
        await self.producers.more()

    async def _has_other_leader(self, leader: str) -> bool:
        return await self.leader() != leader

    async def _without(self, master: Replica, kind: str) -> None:
        """A master that cannot have its messages confirmed acknowledges none."""
        silent_since = time.monotonic()
        if kind == "master from its slaves":
            # The controllers see it alive: the set gets too small for minInSyncReplicas.
            await eventually(partial(self._is_alone, master), WAIT_S)
        else:
            await self.producers.more(others_than=master.name)
        if kind == "master from the controllers":
            # Its slaves acknowledge until they hear of the election.
            silent_since = time.monotonic()
            await self.producers.more(others_than=master.name)
        found = self.producers.accepted_by(master.name, silent_since)
        assert not found, f"{kind}: {len(found)} messages were acknowledged by {master.name}"

    async def _is_alone(self, master: Replica) -> bool:
        found = (await asyncio.to_thread(master.varz)).get("replica_set")
        return found is not None and len(found["sync_state_set"]) == 1

    async def check(self) -> None:
        """Compare what producers know with each replica, and the epochs with their masters."""
        master = await self.set.whole(WAIT_S)
        await self.producers.stop()
        end = master.varz()["store"]["commit_log_max_offset"]
        for replica in self.set.replicas:
            await eventually(partial(_has_confirmed, replica, end), WAIT_S)
            verdict = self.producers.history.check(await read_replica(replica.addr))
            assert verdict.is_clean, (replica.name, verdict.problems[:20])
        self._check_epochs()

    def _check_epochs(self) -> None:
        masters: dict[int, set[str]] = defaultdict(set)
        for replica in self.set.replicas:
            for epoch in ELECTED.findall(replica.program.printed):
                masters[int(epoch)].add(replica.name)
        assert all(len(each) == 1 for each in masters.values()), masters
        epochs = [_epochs_of(each) for each in self.set.replicas]
        assert epochs == [epochs[0]] * REPLICAS
        for broker, offset, _ in self.producers.accepted:
            epoch = max(number for number, start in epochs[0] if start <= offset)
            assert masters[epoch] == {broker}, f"{broker} accepted {offset} of epoch {epoch}"


def _has_confirmed(replica: Replica, end: int) -> bool:
    found = replica.varz()
    return bool(found) and found["replica_set"]["confirm_offset"] >= end


def _epochs_of(replica: Replica) -> list[tuple[int, int]]:
    """The epochs of a replica's file."""
    lines = (replica.store / "epochFileCheckpoint").read_text().splitlines()[2:]
    return [(int(epoch), int(start)) for epoch, _, start in (each.partition("-") for each in lines)]


@pytest.mark.timeout(600 + 120 * PARTITIONS)
async def test_a_partition_loses_nothing(tmp_path: Path) -> None:
    if reason := why_impossible():
        pytest.skip(reason)
    dice = random.Random(FIRST_SEED)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with (
        Network(host_names(REPLICAS, CONTROLLERS)) as network,
        ReplicaSet(
            tmp_path,
            REPLICAS,
            CONTROLLERS,
            network=network,
            min_in_sync_replicas=2,
            metrics_token_file=token,
            **FAST,
        ) as replicas,
    ):
        for replica in replicas.replicas:
            await asyncio.to_thread(replica.start)
        drill = Drill(network, replicas, dice)
        for number in range(PARTITIONS):
            kind = CUTS[number] if number < len(CUTS) else dice.choice(CUTS)
            try:
                await drill.cut(kind)
            except BaseException as failure:
                failure.add_note(f"cut {number}, {kind}, with FIRST_SEED={FIRST_SEED}")
                raise
        await drill.check()
        for replica in replicas.replicas:
            assert await asyncio.to_thread(replica.program.stop) == 0
    assert drill.producers.accepted
