"""Masters of replica sets that die under load, and the checks of what is left."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from core_broker.errors import GantryError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import send_header
from tests.support.cluster import ROOT
from tests.support.eventually import eventually
from tests.support.history import History
from tests.support.load import Load, read_replica
from tests.support.replica_set import Replica, ReplicaSet

#: Bound of every wait, seconds.
WAIT_S = 120.0
SEND_TIMEOUT_MS = 10_000
TOPIC = "T"
#: The epoch of notices that no controller has sent.
FORGED_EPOCH = 1_000_000


class Drill:
    """A replica set under load, whose master dies again and again.

    `is_whole` tells from the state of a broker whether it is the master of a whole set of a size;
    by default, of a set under controllers.
    """

    def __init__(
        self,
        replicas: ReplicaSet,
        seed: int,
        is_whole: Callable[[dict[str, Any], int], bool] | None = None,
    ) -> None:
        self.set = replicas
        self.history = History()
        self.times_s: list[float] = []
        self.dice = random.Random(seed)
        self._is_whole = is_whole
        self._client = RemotingClient(name="drill")

    async def start(self) -> Replica:
        """Start the replicas, and return the first master when all are in sync."""
        for replica in self.set.replicas:
            await asyncio.to_thread(replica.start)
        return await self.whole()

    async def whole(self) -> Replica:
        """Wait until all replicas have the whole log; return the master."""
        if self._is_whole is None:
            return await self.set.whole(WAIT_S)
        master = await eventually(
            partial(self._whole_master, self._is_whole, len(self.set.replicas)), WAIT_S
        )
        assert master is not None
        return master

    def _whole_master(
        self, is_whole: Callable[[dict[str, Any], int], bool], size: int
    ) -> Replica | None:
        for replica in self.set.replicas:
            found = replica.varz().get("replica_set") if replica.is_running else None
            if found and is_whole(found, size):
                return replica
        return None

    async def kill(self, master: Replica) -> None:
        """Kill the master in the middle of a load, and start it again after the failover."""
        load = Load(master.addr, self.history, self.dice)
        running = asyncio.create_task(load.run())
        await load.acknowledged(self.dice.randrange(50, 600), WAIT_S)
        await asyncio.to_thread(master.kill)
        killed_at = time.monotonic()
        await running
        self.times_s.append(await self._accepted() - killed_at)
        await asyncio.to_thread(master.start)

    async def pause(self, master: Replica) -> None:
        """Stop the master's process in the middle of a load, and let it go on after the failover.

        What reached its sockets meanwhile is the end of a log that no other replica has.
        """
        load = Load(master.addr, self.history, self.dice)
        running = asyncio.create_task(load.run())
        await load.acknowledged(self.dice.randrange(50, 600), WAIT_S)
        os.kill(master.program.pid, signal.SIGSTOP)
        try:
            await self._accepted(except_for=master)
        finally:
            os.kill(master.program.pid, signal.SIGCONT)
        load.stop()
        await running

    async def _accepted(self, except_for: Replica | None = None) -> float:
        """Send to the living brokers until one accepts; return the time of the answer."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            for replica in self.set.replicas:
                is_asked = replica.is_running and replica is not except_for
                if is_asked and await self._send(replica.addr):
                    return time.monotonic()
            await asyncio.sleep(0.02)
        raise AssertionError("no replica accepts messages")

    async def _send(self, addr: str) -> bool:
        number = self.history.next_number()
        body = b"%d " % number
        self.history.begin(number, (TOPIC, 0), body)
        header = send_header(TOPIC, queue_id=0)
        request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, body)
        try:
            answer = await self._client.invoke(addr, request, SEND_TIMEOUT_MS)
        except GantryError:
            return False
        if answer.code == ResponseCode.SUCCESS:
            self.history.stored(number, int(answer.ext_fields["queueOffset"]))
        return answer.code == ResponseCode.SUCCESS

    async def forge(self) -> None:
        """Tell every replica, as anybody can, that another broker was elected (1008)."""
        fields = {
            "masterAddress": "127.0.0.1:1",
            "masterBrokerId": "9",
            "masterEpoch": str(FORGED_EPOCH),
            "syncStateSetEpoch": "99",
        }
        body = b'{"syncStateSet":[9],"syncStateSetEpoch":99}'
        for replica in self.set.replicas:
            notice = RemotingCommand.request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, fields, body)
            answer = await self._client.invoke(replica.addr, notice, SEND_TIMEOUT_MS)
            assert answer.code == ResponseCode.SUCCESS

    async def check(self) -> None:
        """Compare what producers know with each replica, and the replicas with each other."""
        master = await self.whole()
        end = master.varz()["store"]["commit_log_max_offset"]
        for replica in self.set.replicas:
            await eventually(partial(_has_confirmed, replica, end), WAIT_S)
        for replica in self.set.replicas:
            verdict = self.history.check(await read_replica(replica.addr))
            assert verdict.is_clean, (replica.name, verdict.problems[:20])

    async def stop(self) -> None:
        """Stop all replicas in order."""
        await self._client.close()
        for replica in self.set.replicas:
            assert await asyncio.to_thread(replica.program.stop) == 0


def _has_confirmed(replica: Replica, end: int) -> bool:
    found = replica.varz()
    return bool(found) and found["replica_set"]["confirm_offset"] >= end


def log_of(replica: Replica, folder: str = "commitlog") -> bytes:
    """The bytes of a commit log, without the zeros behind its end."""
    files = sorted((replica.store / folder).iterdir())
    return b"".join(file.read_bytes() for file in files).rstrip(b"\0")


def verify(replica: Replica, *options: str) -> None:
    """Let `mqstore verify` compare queues and index with the log."""
    command = [sys.executable, "-m", "core_broker.mqstore", "verify", str(replica.store), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
