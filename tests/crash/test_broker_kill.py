"""kill -9 of a broker under load: what was acknowledged is there afterwards, in order, once."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from core_broker.errors import TransportError
from core_broker.message.record import decode_records
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import UpdateConsumerOffsetRequestHeader
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

pytestmark = pytest.mark.crash

PRODUCERS = 4
IN_FLIGHT = 8
ACKNOWLEDGED_BEFORE_KILL = 400


class Load:
    """Producers that send as fast as they are answered, and note what was acknowledged."""

    def __init__(self, addr: str, name: str) -> None:
        self.addr = addr
        self.name = name
        #: Bodies acknowledged, by queue and offset.
        self.acknowledged: dict[int, dict[int, bytes]] = defaultdict(dict)
        self.count = 0
        self.enough = asyncio.Event()
        self._number = 0

    async def run(self) -> None:
        """Send until the broker is gone."""
        clients = [RemotingClient(name=f"load-{number}") for number in range(PRODUCERS)]
        lanes = [self._send(client) for client in clients for _ in range(IN_FLIGHT)]
        await asyncio.gather(*lanes)
        for client in clients:
            await client.close()

    async def _send(self, client: RemotingClient) -> None:
        with suppress(TransportError):
            while True:
                self._number += 1
                body = f"{self.name} {self._number}".encode()
                header = send_header("T", f"KEYS\x01k{self._number}", queue_id=self._number % 4)
                command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, body)
                answer = await client.invoke(self.addr, command, 10_000)
                assert answer.code == 0, answer.remark
                offset = int(answer.ext_fields["queueOffset"])
                self.acknowledged[int(answer.ext_fields["queueId"])][offset] = body
                self.count += 1
                if self.count >= ACKNOWLEDGED_BEFORE_KILL:
                    self.enough.set()


async def read_queue(client: RemotingClient, addr: str, queue_id: int) -> list[bytes]:
    """Everything in a queue."""
    bodies: list[bytes] = []
    while True:
        header = pull_header("T", len(bodies), queue_id=queue_id)
        answer = await client.invoke(addr, RemotingCommand.request(11, header), 10_000)
        if answer.code != 0:
            assert answer.code == 19, answer.remark
            return bodies
        messages = decode_records(answer.body)
        assert [each.queue_offset for each in messages] == list(
            range(len(bodies), len(bodies) + len(messages))
        )
        bodies += [each.body for each in messages]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_kill_under_load(tmp_path: Path, flush: str) -> None:
    with Cluster(tmp_path, flush_disk_type=flush) as cluster:
        everything: dict[int, dict[int, bytes]] = defaultdict(dict)
        for name in ("first", "second"):
            load = Load(cluster.broker_addr, name)
            sending = asyncio.create_task(load.run())
            await asyncio.wait_for(load.enough.wait(), 60)
            cluster.kill_broker()
            await sending
            cluster.restart_broker()
            client = RemotingClient(name="reader")
            for queue_id, acknowledged in load.acknowledged.items():
                assert not everything[queue_id].keys() & acknowledged.keys(), (
                    "an offset given twice"
                )
                everything[queue_id] |= acknowledged
            for queue_id, acknowledged in everything.items():
                stored = await read_queue(client, cluster.broker_addr, queue_id)
                lost = {
                    offset: body
                    for offset, body in acknowledged.items()
                    if offset >= len(stored) or stored[offset] != body
                }
                assert not lost
                assert len(set(stored)) == len(stored), "a message stored twice"
            await client.close()


async def test_tables_survive_a_kill(tmp_path: Path) -> None:
    """Topics are on disk before they are used; offsets at most one flush interval later."""
    with Cluster(tmp_path, flush_consumer_offset_interval=50) as cluster:
        client = RemotingClient(name="client")
        addr = cluster.broker_addr
        for number in range(5):
            command = RemotingCommand.request(310, send_header(f"Auto{number}"), b"x")
            assert (await client.invoke(addr, command)).code == 0
        offset = UpdateConsumerOffsetRequestHeader(
            consumer_group="CG", topic="Auto0", queue_id=0, commit_offset=1
        )
        assert (await client.invoke(addr, RemotingCommand.request(15, offset))).code == 0
        file = cluster.store_folder / "config" / "consumerOffset.json"
        await eventually(lambda: file.exists() and b"Auto0@CG" in file.read_bytes())
        await client.close()
        cluster.kill_broker()
        cluster.restart_broker()
        client = RemotingClient(name="another client")
        for number in range(5):
            command = RemotingCommand.request(11, pull_header(f"Auto{number}"))
            assert (await client.invoke(addr, command)).code == 0
        command = RemotingCommand.request(
            14, {"consumerGroup": "CG", "topic": "Auto0", "queueId": "0"}
        )
        assert (await client.invoke(addr, command)).ext_fields == {"offset": "1"}
        await client.close()
