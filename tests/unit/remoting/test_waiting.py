"""Waiting times of requests, and peers with slow reads or writes."""

import asyncio
import resource
import select
import socket
import sys
import time
from typing import cast

import pytest

from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting import descriptors
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.descriptors import connections_possible, raise_descriptor_limit
from core_broker.remoting.endpoint import READ_BUFFER_BYTES, Limits
from core_broker.remoting.kernel_age import KernelAge, waiting_bytes
from core_broker.remoting.tls_client import ClientTls
from tests.unit.remoting.peers import (
    DEADLINE_S,
    Holder,
    Loopback,
    echo,
    port_of,
    request,
    until,
)
from tests.unit.remoting.tls_peers import Tls


class Noting:
    """A slow dispatch function that records the arrival time of each request."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self.handled: dict[int, float] = {}
        self.pause_s = 0.0

    def __call__(self, connection: Connection, command: RemotingCommand) -> RemotingCommand:
        time.sleep(self.pause_s)
        self.arrived[command.opaque] = connection.state.arrived
        self.handled[command.opaque] = time.monotonic()
        return RemotingCommand.response(body=command.body)


async def test_waiting_time_behind_requests_of_the_same_iteration(loopback: Loopback) -> None:
    noting = Noting()
    peer = await loopback.peer(await loopback.server(noting))
    noting.pause_s = 0.01
    before = time.monotonic()
    await peer.send(*(request(opaque=at) for at in range(4)))
    for _ in range(4):
        await peer.receive()
    assert len(set(noting.arrived.values())) == 1, "they came in one piece"
    assert before <= noting.arrived[3] <= noting.handled[0]
    assert noting.handled[3] - noting.arrived[3] >= 3 * noting.pause_s


async def test_a_new_iteration_restarts_the_waiting_time(loopback: Loopback) -> None:
    noting = Noting()
    peer = await loopback.peer(await loopback.server(noting))
    for opaque in range(2):
        await peer.send(request(opaque=opaque))
        await peer.receive()
    assert noting.arrived[1] >= noting.handled[0]


async def test_stalled_requests_keep_their_arrival_time(
    loopback: Loopback,
) -> None:
    arrived: dict[int, float] = {}

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        arrived[command.opaque] = connection.state.arrived
        return RemotingCommand.response(body=bytes(100_000))

    server = await loopback.server(dispatch, limits=Limits(write_high_water_bytes=200_000))
    peer = await loopback.peer(server, receive_buffer=65_536)
    count = 400
    await peer.send(*(request(opaque=at) for at in range(count)))
    await until(lambda: server.slow_readers)
    assert server.unsent_bytes > 0
    stalled = time.monotonic()
    assert len(arrived) < count
    for _ in range(count):
        await peer.receive()
    assert arrived[count - 1] < stalled, "it came before the peer was waited for"
    await until(lambda: not server.slow_readers)
    assert server.unsent_bytes == 0


async def test_the_receive_queue_length_is_known() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = cast("asyncio.Transport", _Transport(ours))
        assert waiting_bytes(transport) == 0
        theirs.send(bytes(100))
        assert waiting_bytes(transport) == 100

        age = KernelAge()
        assert age.since(transport, READ_BUFFER_BYTES, 5.0) == 5.0
        assert age.pending == 100
        known = age.since(transport, 60, 9.0)
        assert known != 9.0, "these bytes were there when we asked"
        assert age.since(transport, 41, 9.0) == 9.0, "the last of these was not"


class _Transport:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self._sock if name == "socket" else None

    def is_closing(self) -> bool:
        return False


@pytest.mark.parametrize("has_tls", [False, True])
async def test_the_receive_queue_of_a_server_with_tls(tls: Tls, has_tls: bool) -> None:
    """Encrypted bytes are no measure of the bytes to read, and so count as none."""
    server = await tls.server(tls.files.settings())
    peer = await asyncio.to_thread(
        asked_once, port_of(server), tls.files.tls() if has_tls else None
    )
    with peer:
        transport = next(iter(server.connections))._transport
        # The event loop reads nothing before the next await.
        peer.sendall(bytes(100))
        queue = transport.get_extra_info("socket").fileno()
        await_queue(queue)
        assert waiting_bytes(transport) == (0 if has_tls else 100)


def asked_once(port: int, tls: ClientTls | None) -> socket.socket:
    """A blocking connection behind its first answer."""
    peer = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    if tls is not None:
        peer = tls.context().wrap_socket(peer)
    peer.sendall(request().encode())
    assert peer.recv(1024)
    return peer


def await_queue(descriptor: int) -> None:
    """Wait for bytes in a receive queue, without the event loop."""
    with select.epoll() as poll:
        poll.register(descriptor, select.EPOLLIN)
        assert poll.poll(DEADLINE_S)


async def test_a_peer_that_drips_bytes_is_closed(loopback: Loopback) -> None:
    server = await loopback.server(echo, limits=Limits(idle_close_s=0.2))
    dripping = await loopback.peer(server)
    closed = asyncio.create_task(dripping.at_end())
    frame = request(body=bytes(10_000)).encode()
    for byte in frame:
        if closed.done():
            break
        dripping.writer.write(bytes([byte]))
        await asyncio.sleep(0.002)
    assert await closed == b""
    assert server.counters.idle == 1


async def test_a_large_frame_over_a_slow_line_is_accepted(loopback: Loopback) -> None:
    limits = Limits(idle_close_s=0.4, drip_bytes_max=100)
    server = await loopback.server(echo, limits=limits)
    peer = await loopback.peer(server)
    frame = request(body=bytes(40_000)).encode()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for start in range(0, len(frame), 400):
        await peer.send(frame[start : start + 400])
        await asyncio.sleep(0.01)
    assert loop.time() - began > limits.idle_close_s
    assert len((await peer.receive()).body) == 40_000
    assert server.counters.idle == 0


async def test_unsent_bytes_of_all_slow_readers_are_limited(loopback: Loopback) -> None:
    limits = Limits(
        write_high_water_bytes=100_000, write_bytes_max=50_000_000, unsent_bytes_max=2_000_000
    )
    holder = Holder()
    server = await loopback.server(holder, limits=limits)
    slow = [await loopback.peer(server, receive_buffer=65_536) for _ in range(4)]
    for peer in slow:
        await peer.send(*(request(opaque=at) for at in range(30)))
    await until(lambda: len(holder.held) == 120)
    while holder.held:
        holder.answer(bytes(200_000))
        await asyncio.sleep(0)
        assert server.unsent_bytes <= limits.unsent_bytes_max + 200_100
    assert 0 < server.counters.slow_readers < 4, "whoever added to it, not everybody"
    honest = await loopback.peer(server)
    await honest.send(request(opaque=7))
    await until(lambda: holder.held)
    holder.answer(b"still here")
    assert (await honest.receive()).body == b"still here"


@pytest.mark.parametrize("announced", [FRAME_BYTES_MAX, 4 * 1024 * 1024])
async def test_an_announced_length_takes_no_memory(loopback: Loopback, announced: int) -> None:
    server = await loopback.server(echo)
    peer = await loopback.peer(server)
    await peer.send(announced.to_bytes(4, "big") + b"\0\0\0\x10")
    await until(lambda: server.unfinished_bytes)
    assert server.unfinished_bytes == 8


def test_connections_leave_descriptors_to_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(soft: int, hard: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))

    for soft, possible in ((20_000, 18_976), (1024, 512), (3, 2), (1, 1)):
        limited(soft, soft)
        assert connections_possible() == possible
    limited(resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert connections_possible() == sys.maxsize - descriptors.FILES_RESERVE


def test_the_descriptor_limit_is_raised_to_the_hard_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    raised = raise_descriptor_limit()
    assert raised == (sys.maxsize if hard == resource.RLIM_INFINITY else hard)
