"""Connections with and without TLS on one port: the first byte; bounds of silent peers."""

import asyncio

import pytest

from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.endpoint import Limits
from tests.unit.remoting.peers import port_of, until
from tests.unit.remoting.tls_peers import BODY, Tls, asked


async def test_plain_and_tls_on_one_port(tls: Tls) -> None:
    server = await tls.server(tls.files.settings())
    kinds = [tls.files.tls(), None] * 10
    await asyncio.gather(*(tls.asks(server, kind) for kind in kinds))
    assert (server.counters.opened, server.counters.tls_opened) == (20, 10)


async def test_large_frames_and_many_requests(tls: Tls) -> None:
    """Bodies of many TLS records, larger than the shared read buffer."""
    server = await tls.server(tls.files.settings())
    client = tls.client(tls.files.tls())
    sizes = [1, 16_383, 16_384, 262_144, 3_000_000]
    await asyncio.gather(*(asked(client, server, bytes(size)) for size in sizes * 4))


async def test_no_byte_is_lost(tls: Tls) -> None:
    """The first bytes arrive one by one."""
    server = await tls.server(tls.files.settings())
    peer = await tls.loopback.peer(server)
    for byte in RemotingCommand(1, None, BODY, opaque=7).encode()[:-1]:
        await peer.send(bytes([byte]))
        await asyncio.sleep(0)
    await peer.send(BODY[-1:])
    assert (await peer.receive()).body == BODY


async def test_enforcing_refuses_plain(tls: Tls, caplog: pytest.LogCaptureFixture) -> None:
    server = await tls.server(tls.files.settings(tls_server_mode="enforcing"))
    peer = await tls.loopback.peer(server)
    await peer.send(RemotingCommand(1, None, BODY, opaque=7))
    assert await peer.at_end() == b""
    await tls.asks(server, tls.files.tls())
    assert server.counters.plain_refused == 1
    assert "the peer does not speak TLS, and tls.server.mode is enforcing" in caplog.text


async def test_the_peers_end_closes_the_connection(tls: Tls) -> None:
    server = await tls.server(tls.files.settings())
    client = tls.client(tls.files.tls())
    await asked(client, server)
    await client.close()
    await until(lambda: not server.connections)


async def test_a_slow_reader_stalls_alone(tls: Tls) -> None:
    """Answers of a peer that does not read wait, and the server reads no more requests of it."""
    server = await tls.server(tls.files.settings())
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port_of(server), ssl=tls.files.tls().context(), limit=1024
    )
    frame = RemotingCommand(1, None, bytes(500_000), opaque=7).encode()
    count = 40
    sending = asyncio.create_task(write_all(writer, frame, count))
    await until(lambda: server.slow_readers or any(c.state.is_stalled for c in server.connections))
    await tls.asks(server, tls.files.tls())
    for _ in range(count):
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
    await sending
    writer.close()


# Bounds.


async def test_silence_after_the_first_byte_ends(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    server = await tls.server(tls.files.settings(), limits=Limits(handshake_timeout_s=0.2))
    peer = await tls.loopback.peer(server)
    await peer.send(b"\x16")
    assert await peer.at_end() == b""
    await until(lambda: server.counters.tls_failed == 1)
    assert "the TLS handshake failed" in caplog.text


async def test_silence_before_the_first_byte_ends(tls: Tls) -> None:
    server = await tls.server(tls.files.settings(), limits=Limits(idle_close_s=0.5))
    peer = await tls.loopback.peer(server)
    assert await peer.at_end() == b""
    assert server.counters.silent == 1


async def test_the_oldest_handshake_gives_way(tls: Tls) -> None:
    server = await tls.server(
        tls.files.settings(), limits=Limits(handshakes_max=3, handshake_timeout_s=60)
    )
    peers = []
    for _ in range(20):
        peers.append(await tls.loopback.peer(server))
        await peers[-1].send(b"\x16\x03\x01")
    await until(lambda: server.counters.tls_displaced == 17)
    assert server._ports._listeners[0].waiting == 3
    await tls.asks(server, tls.files.tls())


@pytest.mark.parametrize(
    "record",
    [b"\x16\x03\x01\x00\x05nope!", b"\x16" + bytes(64), b"\x16\x03\x01\xff\xff" + bytes(99)],
)
async def test_garbage_behind_the_first_byte(tls: Tls, record: bytes) -> None:
    server = await tls.server(tls.files.settings())
    peer = await tls.loopback.peer(server)
    await peer.send(record)
    await peer.at_end()
    await until(lambda: server.counters.tls_failed == 1)
    await tls.asks(server, tls.files.tls())


async def test_connections_above_the_limit_are_closed(tls: Tls) -> None:
    server = await tls.server(tls.files.settings(), limits=Limits(connections_max=2))
    for _ in range(2):
        await tls.loopback.peer(server)
    await until(lambda: server._ports._listeners[0].waiting == 2)
    third = await tls.loopback.peer(server)
    assert await third.at_end() == b""
    assert server.counters.refused == 1


async def test_close_ends_what_is_not_open(tls: Tls) -> None:
    server = await tls.server(tls.files.settings())
    silent, hello = await tls.loopback.peer(server), await tls.loopback.peer(server)
    await hello.send(b"\x16")
    listener = server._ports._listeners[0]
    await until(lambda: listener.waiting == 2 and listener._handshakes)
    await server.close()
    assert (await silent.at_end(), await hello.at_end()) == (b"", b"")


async def write_all(writer: asyncio.StreamWriter, frame: bytes, count: int) -> None:
    for _ in range(count):
        writer.write(frame)
        await writer.drain()
