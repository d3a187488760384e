"""A real broker under more peers, more load or slower readers than it can serve.

Sizes are those of a quick run; OVERLOAD_SCALE=10 makes them as large as a night allows. Nothing
here asserts a time: what must hold does so on any machine.
"""

import asyncio
import os
import resource
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from core_broker.errors import TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import Cluster
from tests.wire.test_frame_fuzz import resident_bytes

SCALE = int(os.environ.get("OVERLOAD_SCALE", "1"))
IDLE_PEERS = 1_000 * SCALE
CONNECTION_BYTES_MAX = 20 * 1024
FLOOD_PEERS, FLOOD_MESSAGES = 8, 4_000 * SCALE
STUCK_PEERS, STUCK_PULLS = 40 * SCALE, 60
BODY = bytes(40_000)
DEADLINE_S = 60.0


class Peers:
    """Starts a broker and raw connections, and closes broker and connections."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self.cluster: Cluster
        self.client = RemotingClient(name="honest")
        stack.push_async_callback(self.client.close)

    async def broker(self, **settings: Any) -> None:
        self.cluster = await asyncio.to_thread(Cluster, self._folder, **settings)
        self._stack.callback(self.cluster.stop)

    async def connect(self, receive_buffer: int = 0) -> socket.socket:
        host, _, port = self.cluster.broker_addr.rpartition(":")
        peer = socket.socket()
        self._stack.callback(peer.close)
        if receive_buffer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_connect(peer, (host, int(port)))
        return peer

    async def send(self, topic: str, body: bytes = b"body") -> RemotingCommand:
        """An honest client's message."""
        command = RemotingCommand.request(310, send_header(topic, ""), body)
        return await self.client.invoke(self.cluster.broker_addr, command, DEADLINE_S * 1000)

    async def ask(self, code: int, fields: dict[str, str]) -> RemotingCommand:
        command = RemotingCommand.request(code, fields)
        return await self.client.invoke(self.cluster.broker_addr, command, DEADLINE_S * 1000)

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self.cluster.broker.pid)


@pytest_asyncio.fixture
async def peers(tmp_path: Path) -> AsyncIterator[Peers]:
    async with AsyncExitStack() as stack:
        yield Peers(stack, tmp_path)


async def ended(peer: socket.socket) -> bool:
    """Wait until the broker closes the connection; False after the timeout."""
    loop = asyncio.get_running_loop()
    with suppress(ConnectionResetError):
        async with asyncio.timeout(DEADLINE_S):
            while await loop.sock_recv(peer, 1 << 20):
                pass
    return True


async def test_many_idle_connections_cost_little(peers: Peers) -> None:
    await peers.broker()
    assert (await peers.send("Busy")).code == 0
    before = peers.resident_bytes
    idle = [await peers.connect() for _ in range(IDLE_PEERS)]
    answers = await asyncio.gather(*(peers.send("Busy") for _ in range(100)))
    assert {answer.code for answer in answers} == {0}
    each = (peers.resident_bytes - before) / IDLE_PEERS
    assert each < CONNECTION_BYTES_MAX, f"{each / 1024:.1f} KiB per connection"

    for peer in idle:
        peer.close()
    again = await asyncio.gather(*(peers.connect() for _ in range(IDLE_PEERS)))
    assert len(again) == IDLE_PEERS
    assert (await peers.send("Busy")).code == 0


async def test_running_out_of_descriptors_is_survived(peers: Peers) -> None:
    await peers.broker()
    assert (await peers.send("Few")).code == 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = 200
    resource.prlimit(peers.cluster.broker.pid, resource.RLIMIT_NOFILE, (limit, hard))
    crowd = [await peers.connect() for _ in range(limit + 50)]
    answers = await asyncio.gather(*(peers.send("Few") for _ in range(100)))
    # A flush of consume queues at this moment cannot open its files: the store refuses meanwhile.
    assert {answer.code for answer in answers} <= {0, ResponseCode.SERVICE_NOT_AVAILABLE}
    for peer in crowd:
        peer.close()
    async with asyncio.timeout(DEADLINE_S):
        while (await peers.send("Few")).code:
            await asyncio.sleep(0.1)
    late = RemotingClient(name="late")
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(TransportError):
                found = RemotingCommand.request(RequestCode.GET_BROKER_CONFIG)
                answer = await late.invoke(peers.cluster.broker_addr, found, 1_000)
                break
    await late.close()
    assert answer.code == 0


async def flood(peers: Peers, topic: str) -> Counter[int]:
    """Send many messages without waiting for an answer; returns the answers by their code."""
    loop = asyncio.get_running_loop()
    peer = await peers.connect()
    frames = []
    for opaque in range(FLOOD_MESSAGES):
        command = RemotingCommand.request(310, send_header(topic, ""), b"flood")
        command.opaque = opaque
        frames.append(command.encode())
    sending = asyncio.create_task(loop.sock_sendall(peer, b"".join(frames)))
    codes: Counter[int] = Counter()
    splitter = FrameSplitter()
    async with asyncio.timeout(DEADLINE_S):
        while codes.total() < FLOOD_MESSAGES:
            data = await loop.sock_recv(peer, 1 << 20)
            assert data, "the broker closed a connection that was only busy"
            codes.update(answer.code for answer in splitter.feed(data))
        await sending
    return codes


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_a_flood_is_acknowledged_or_refused(peers: Peers, *, is_compiled: bool) -> None:
    await peers.broker(wait_time_mills_in_send_queue=5, kernel_enable=is_compiled)
    assert (await peers.send("Flood")).code == 0
    floods = await asyncio.gather(*(flood(peers, "Flood") for _ in range(FLOOD_PEERS)))
    codes = sum(floods, Counter[int]())
    assert codes.total() == FLOOD_PEERS * FLOOD_MESSAGES
    assert set(codes) <= {ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY}
    assert codes[0]
    # The flood exceeds the limit, unless the compiled kernel is faster than the flood.
    assert is_compiled or codes[ResponseCode.SYSTEM_BUSY]
    end = await peers.ask(RequestCode.GET_MAX_OFFSET, {"topic": "Flood", "queueId": "0"})
    assert int(end.ext_fields["offset"]) == 1 + codes[0], "stored is what was acknowledged"
    assert (await peers.send("Flood")).code == 0, "and it is over when the flood is"


async def test_readers_that_do_not_read_are_bounded_and_dropped(peers: Peers) -> None:
    # 19 messages of 40 kB fill a pull; each peer requests 60 times 640 kB and reads no answer.
    await peers.broker(
        max_transfer_bytes_on_message_in_memory=len(BODY) * 16,
        max_transfer_bytes_on_message_in_disk=len(BODY) * 16,
        max_transfer_count_on_message_in_disk=32,
        server_channel_max_idle_time_seconds=2,
    )
    for _ in range(19):
        assert (await peers.send("Large", BODY)).code == 0
    before = peers.resident_bytes
    loop = asyncio.get_running_loop()
    pull = RemotingCommand.request(11, pull_header("Large")).encode() * STUCK_PULLS
    stuck = [await peers.connect(receive_buffer=16_384) for _ in range(STUCK_PEERS)]
    for peer in stuck:
        await loop.sock_sendall(peer, pull)
    answers = await asyncio.gather(*(peers.send("Other") for _ in range(100)))
    assert {answer.code for answer in answers} == {0}
    # The high-water mark and an answer above the mark, twice during a write.
    each = (peers.resident_bytes - before) / STUCK_PEERS
    assert each < 4 * 1024 * 1024, f"{each / 1024:.0f} KiB for a peer that does not read"
    assert all(await asyncio.gather(*(ended(peer) for peer in stuck)))
    assert (await peers.send("Other")).code == 0
