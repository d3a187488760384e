"""The kernel reads the connections without TLS: whose bytes, when, and how many at a time.

The modules in conftest.READ_BY_BOTH check the rules that hold for both ways to read.
"""

import asyncio
import logging
import os
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from core_broker.errors import TransportError
from core_broker.fastpath import has_kernel
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import READ_BUFFER_BYTES, Limits
from core_broker.remoting.iteration import IterationEnd
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_server import ServerTls
from tests.unit.remoting.peers import Loopback, Peer, echo, port_of, request, until
from tests.unit.remoting.tls_peers import BODY, TIMEOUT_MS, Files

if has_kernel():
    from core_broker.fastpath import polled_reads

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

MIB = 1024 * 1024
#: Closes a socket with RST in place of FIN.
RESET = struct.pack("ii", 1, 0)


@pytest.fixture
async def polled() -> AsyncIterator[Loopback]:
    async with AsyncExitStack() as stack:
        yield Loopback(stack, is_polled=True)


async def polled_peer(polled: Loopback, server: RemotingServer, **options: int) -> Peer:
    """A peer whose connection the kernel reads."""
    before = polled.intake.polled_reads.connections
    peer = await polled.peer(server, **options)
    await until(lambda: polled.intake.polled_reads.connections == before + 1)
    return peer


def poller(polled: Loopback) -> Any:
    found = polled.intake.polled_reads._poller
    assert found is not None
    return found


def connection_of(server: RemotingServer, peer: Peer) -> Connection:
    port = peer.writer.get_extra_info("sockname")[1]
    (found,) = [each for each in server.connections if each.peer_port == port]
    return found


def say(peer: Peer, data: bytes) -> None:
    """Write at once, so that the bytes are there before the event loop polls."""
    assert os.write(peer.writer.get_extra_info("socket").fileno(), data) == len(data)


def plain_socket(server: RemotingServer) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port_of(server)))
    peer.setblocking(False)
    return peer


async def test_the_event_loop_reads_with_tls_and_the_kernel_without(
    polled: Loopback, files: Files
) -> None:
    server = await polled.server(echo, tls=ServerTls(files.settings(), "server"))
    client = polled.client(tls=files.tls())
    addr = f"127.0.0.1:{port_of(server)}"
    answer = await client.invoke(addr, RemotingCommand.request(1, {}, BODY), TIMEOUT_MS)
    assert answer.body == BODY
    assert polled.intake.polled_reads.connections == 0

    peer = await polled.peer(server)
    for _ in range(2):  # the first byte opens the connection
        await peer.send(request(body=BODY))
        assert (await peer.receive()).body == BODY
    assert polled.intake.polled_reads.connections == 1
    assert poller(polled).reads > 0
    assert len(server.connections) == 2


async def test_the_event_loop_reads_where_the_system_has_no_epoll(
    polled: Loopback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(polled_reads, "Poller", refuse)
    server = await polled.server(echo)
    with caplog.at_level(logging.WARNING):
        peers = [await polled.peer(server) for _ in range(3)]
        for number, peer in enumerate(peers):
            await peer.send(request(opaque=number))
            assert (await peer.receive()).opaque == number
    assert polled.intake.polled_reads.connections == 0
    (warning,) = [each for each in caplog.records if each.name == polled_reads.__name__]
    assert "Too many open files" in warning.getMessage()


async def test_the_event_loop_reads_a_connection_that_epoll_refuses(
    polled: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(polled_reads.Poller):  # type: ignore[misc, name-defined]
        def add(self, protocol: object) -> bool:
            return False

    monkeypatch.setattr(polled_reads, "Poller", Refusing)
    limits = Limits(write_high_water_bytes=50_000)
    server = await polled.server(echo, limits=limits)
    peer = await polled.peer(server, receive_buffer=4096)
    for number in range(20):
        await peer.send(request(opaque=number, body=bytes(40_000)))
    assert [(await peer.receive()).opaque for _ in range(20)] == list(range(20))
    assert poller(polled).reads == 0


async def test_long_frames_and_frames_cut_anywhere(polled: Loopback) -> None:
    server = await polled.server(echo)
    peer = await polled_peer(polled, server)
    rng = random.Random(3)
    sizes = [0, 1, 100, READ_BUFFER_BYTES - 50, READ_BUFFER_BYTES, MIB, 3 * MIB, 5]
    stream = b"".join(
        request(opaque=number, body=rng.randbytes(size)).encode()
        for number, size in enumerate(sizes)
    )

    async def receive() -> list[tuple[int, int]]:
        answers = [await peer.receive() for _ in sizes]
        return [(each.opaque, len(each.body)) for each in answers]

    received = asyncio.create_task(receive())
    at = 0
    while at < len(stream):
        size = rng.choice([1, 7, 1000, 60_000, 300_000])
        await peer.send(stream[at : at + size])
        at += size
    assert await received == list(enumerate(sizes))
    assert server.unfinished_bytes == 0


async def test_connections_that_open_and_close_quickly(polled: Loopback) -> None:
    """Closed with FIN, RST, or in the middle of a frame; descriptors are used again at once."""
    server = await polled.server(echo)
    honest = await polled_peer(polled, server)
    rng = random.Random(7)
    loop = asyncio.get_running_loop()
    for number in range(300):
        peer = plain_socket(server)
        frame = request(opaque=number, body=b"x" * 100).encode()
        await loop.sock_sendall(peer, frame[: rng.choice([0, 5, 50, len(frame)])])
        if rng.random() < 0.5:
            await asyncio.sleep(0)
        if rng.random() < 0.5:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        peer.close()
        if number % 20 == 0:
            await honest.send(request(opaque=number))
            assert (await honest.receive()).opaque == number
    await until(lambda: len(server.connections) == 1)
    assert polled.intake.polled_reads.connections == 1
    assert server.counters.opened == 301
    assert server.unfinished_bytes == 0


async def test_the_reason_of_a_reset_is_known(polled: Loopback) -> None:
    closed: list[Connection] = []
    server = await polled.server(echo, on_close=closed.append)
    peer = await polled_peer(polled, server)
    sock = peer.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.writer.transport.abort()
    await until(lambda: closed)
    assert "reset by peer" in closed[0].state.close_reason
    assert polled.intake.polled_reads.connections == 0


async def test_requests_before_the_end_of_a_stream_are_answered(polled: Loopback) -> None:
    server = await polled.server(echo)
    peer = await polled_peer(polled, server)
    await peer.send(*(request(opaque=at, body=bytes(30_000)) for at in range(20)))
    peer.writer.write_eof()
    received = [await peer.receive() for _ in range(20)]
    assert [each.opaque for each in received] == list(range(20))
    assert await peer.at_end() == b""
    await until(lambda: not server.connections)


async def test_a_connection_closed_by_an_earlier_one_of_its_round(polled: Loopback) -> None:
    """The events of a round are known before the first read: one that is out of date is dropped."""
    handled: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        handled.append(command.opaque)
        for other in list(server.connections):
            if other is not connection:
                other.abort("kicked")
        return echo(connection, command)

    server = await polled.server(dispatch)
    peers = [await polled_peer(polled, server) for _ in range(8)]
    for number, peer in enumerate(peers):
        say(peer, request(opaque=number).encode())
    await until(lambda: len(server.connections) == 1)
    assert len(handled) == 1
    reads = poller(polled).reads
    assert reads == 1
    assert (await peers[handled[0]].receive()).opaque == handled[0]


async def test_an_event_of_an_earlier_registration_is_dropped(polled: Loopback) -> None:
    """A descriptor that is registered again may belong to another connection."""
    rounds: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        rounds.append(poller(polled).rounds)
        for other in server.connections:
            if other is not connection and len(rounds) == 1:
                other._transport.pause_reading()
                other._transport.resume_reading()
        return echo(connection, command)

    server = await polled.server(dispatch)
    peers = [await polled_peer(polled, server) for _ in range(2)]
    for peer in peers:
        say(peer, request().encode())
    for peer in peers:
        await peer.receive()
    assert rounds[1] > rounds[0]


async def test_ever_more_bytes_delay_neither_peers_nor_callbacks(polled: Loopback) -> None:
    """A connection is read once per round, and the rounds of one call are bounded in time."""
    order: list[str] = []
    loop = asyncio.get_running_loop()
    refills_max = 200_000

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        order.append("flood" if command.flag else "other")
        if not command.flag:
            loop.call_soon(order.append, "callback")
            return echo(connection, command)
        if len(order) == 10:
            say(other, request().encode())
        if "callback" not in order[-2:] and len(order) < refills_max:
            # The next request is there before the read of the last one ends.
            say(flood, oneway)
        return None

    oneway = request(flag=2).encode()
    server = await polled.server(dispatch)
    flood, other = [await polled_peer(polled, server) for _ in range(2)]
    say(flood, oneway)
    await other.receive()
    await until(lambda: "callback" in order)
    # One read of the flood may be before the other connection's in the same round.
    assert 10 <= order.index("other") <= 12
    assert order.index("callback") < refills_max


async def test_a_paused_connection_is_not_read(polled: Loopback) -> None:
    """A peer that does not read its answers is not read, others are; none of its requests is lost.

    Answers that the kernel sends stay behind the bytes that the transport has not sent.
    """
    server = await polled.server(echo, limits=Limits(write_high_water_bytes=50_000))
    slow = await polled_peer(polled, server, receive_buffer=4096)
    other = await polled_peer(polled, server)
    sent = asyncio.create_task(
        slow.send(*(request(opaque=at, body=bytes([at]) * 40_000) for at in range(100)))
    )
    connection = connection_of(server, slow)
    await until(lambda: connection.state.is_write_paused)
    assert polled.intake.polled_reads.connections == 1
    await other.send(request(opaque=5))
    assert (await other.receive()).opaque == 5
    received = [await slow.receive() for _ in range(100)]
    await sent
    assert [(each.opaque, each.body[:1]) for each in received] == [
        (at, bytes([at])) for at in range(100)
    ]
    await until(lambda: polled.intake.polled_reads.connections == 2)


async def test_a_handler_that_breaks_closes_its_connection_only(polled: Loopback) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: reported.append(found))
    server = await polled.server(echo)
    bad, good = [await polled_peer(polled, server) for _ in range(2)]
    broken = connection_of(server, bad)

    def fail(data: memoryview) -> bytes:
        raise MemoryError("no memory for a read")

    broken.take_rest = fail  # type: ignore[method-assign]
    for peer in (bad, good):
        say(peer, request(opaque=3).encode())
    assert (await good.receive()).opaque == 3
    assert await bad.at_end() == b""
    assert broken.state.close_reason == "no memory for a read"
    assert [str(each["exception"]) for each in reported] == ["no memory for a read"]


async def test_an_iteration_writes_once_before_its_answers(polled: Loopback) -> None:
    """The requests of all connections of a round share one end of the iteration."""
    written: list[int] = []
    handled: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        handled.append(command.opaque)
        return echo(connection, command)

    def write() -> None:
        for peer in sockets:
            with pytest.raises(BlockingIOError):
                peer.recv(1)
        written.append(len(handled))

    server = await polled.server(dispatch, iteration_end=IterationEnd(before_write=(write,)))
    sockets = [plain_socket(server) for _ in range(8)]
    await until(lambda: polled.intake.polled_reads.connections == 8)
    for number, peer in enumerate(sockets):
        peer.send(request(opaque=number).encode())
    await until(lambda: len(handled) == 8)
    await until(lambda: written)
    assert written == [8]
    for number, peer in enumerate(sockets):
        data = await asyncio.get_running_loop().sock_recv(peer, 4096)
        assert RemotingCommand.decode(data).opaque == number
        peer.close()


async def test_a_client_is_invoked_over_a_polled_connection(polled: Loopback) -> None:
    """Requests of the server to its peer, and a close by the server."""
    server = await polled.server(echo)
    peer = await polled_peer(polled, server)
    connection = connection_of(server, peer)
    asked = asyncio.create_task(connection.invoke(RemotingCommand.request(9, {}), TIMEOUT_MS))
    command = await peer.receive()
    await peer.send(RemotingCommand.response(0).answer_to(command))
    assert (await asked).code == 0
    connection.close("enough")
    assert await peer.at_end() == b""
    await until(lambda: not server.connections)
    with pytest.raises(TransportError):
        await connection.invoke(RemotingCommand.request(9, {}), TIMEOUT_MS)
