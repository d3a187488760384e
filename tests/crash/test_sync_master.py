"""A SYNC_MASTER whose slave is paused, killed and started again: what producers are answered.

`SLAVE_ROUNDS` sets how often. The slave is a Gantry slave in a process of its own.
"""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import psutil
import pytest

from core_broker.client.admin import AdminClient
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import send_header
from tests.support.cluster import Cluster, Program, free_broker_port
from tests.support.eventually import eventually

pytestmark = pytest.mark.crash

ROUNDS = int(os.environ.get("SLAVE_ROUNDS", "1"))
#: Bound of every wait, seconds.
WAIT_S = 60.0
SEND_MS_MAX = 60_000
#: The master never gives a silent slave up, and waits for an acknowledgement for so long.
MASTER = {
    "broker_role": "SYNC_MASTER",
    "broker_ip2": "127.0.0.1",
    "ha_housekeeping_interval": 600_000,
    "slave_timeout": 500,
}
OK = ResponseCode.SUCCESS
LATE = ResponseCode.FLUSH_SLAVE_TIMEOUT
MISSING = ResponseCode.SLAVE_NOT_AVAILABLE


class Sender:
    """Sends numbered messages to the master."""

    def __init__(self, addr: str) -> None:
        self._addr = addr
        self._client = RemotingClient(name="test")
        self.count = 0

    async def send(self) -> int:
        """Send a message; return the code of the answer."""
        body = b"%d" % self.count
        self.count += 1
        request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_header("T"), body)
        return (await self._client.invoke(self._addr, request, SEND_MS_MAX)).code

    async def until(self, code: int, *others: int) -> None:
        """Send until an answer has the code; answers before have it or one of the others."""

        async def is_answered() -> bool:
            found = await self.send()
            assert found in (code, *others)
            return found == code

        await eventually(is_answered, WAIT_S)

    async def close(self) -> None:
        await self._client.close()


def is_paused(slave: Program) -> bool:
    return psutil.Process(slave.pid).status() == psutil.STATUS_STOPPED


def log_bytes(store: Path) -> bytes:
    """The bytes of a log without the zeros behind its end."""
    files = sorted((store / "commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files).rstrip(b"\0")


@pytest.mark.timeout(300 + 120 * ROUNDS)
async def test_a_paused_and_a_killed_slave_of_a_sync_master(tmp_path: Path) -> None:
    folder = tmp_path / "slave"
    folder.mkdir()
    slave = Program("core_broker", folder)
    with Cluster(tmp_path, **MASTER) as cluster:
        sender = Sender(cluster.broker_addr)
        settings = cluster.broker_settings | {
            "broker_role": "SLAVE",
            "broker_id": 1,
            "listen_port": free_broker_port(),
            "store_path_root_dir": folder / "store",
        }
        try:
            assert await sender.send() == MISSING
            for _ in range(ROUNDS):
                await asyncio.to_thread(slave.start, settings)
                await sender.until(OK, MISSING, LATE)
                os.kill(slave.pid, signal.SIGSTOP)
                await eventually(partial(is_paused, slave), WAIT_S)
                assert [await sender.send() for _ in range(3)] == [LATE] * 3
                os.kill(slave.pid, signal.SIGCONT)
                await sender.until(OK, LATE)
                await asyncio.to_thread(slave.kill)
                await sender.until(MISSING, LATE)
            await asyncio.to_thread(slave.start, settings)
            await sender.until(OK, MISSING, LATE)
            assert await asyncio.to_thread(slave.stop) == 0
            async with AdminClient(cluster.namesrv_addr) as admin:
                assert await admin.max_offset(cluster.broker_addr, "T", 0) == sender.count
        finally:
            slave.kill()
            await sender.close()
        assert log_bytes(folder / "store") == log_bytes(cluster.store_folder)
