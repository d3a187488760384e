"""Hostile peers of a port with TLS: damaged and slow handshakes, damaged records. Seeded."""

import asyncio
import os
import random
import socket
import ssl
from typing import Any

import pytest

from core_broker.remoting.endpoint import Limits
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from tests.unit.remoting.peers import DEADLINE_S, port_of, request, until
from tests.unit.remoting.tls_peers import Tls

SEED = 20261123
DAMAGED = 150
DRIP_INTERVAL_S = 0.02


@pytest.fixture
async def loop_errors() -> list[dict[str, Any]]:
    """Errors that nobody has caught, by the event loop."""
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    return errors


async def test_damaged_hellos_harm_nobody(tls: Tls, loop_errors: list[dict[str, Any]]) -> None:
    server = await tls.server(tls.files.settings())
    hello = client_hello(tls.files.tls())
    chance = random.Random(SEED)
    for number in range(DAMAGED):
        peer = await tls.loopback.peer(server)
        await peer.send(damaged(hello, chance))
        peer.writer.write_eof()
        await peer.at_end()
        if number % 50 == 0:
            await tls.asks(server, tls.files.tls())
    await until(lambda: server._ports._listeners[0].waiting == 0)
    await tls.asks(server, tls.files.tls())
    await tls.asks(server, None)
    assert not loop_errors, f"seed {SEED}"


async def test_a_dripping_handshake_ends(tls: Tls) -> None:
    """A peer that always sends the next byte has no longer than other peers."""
    server = await tls.server(tls.files.settings(), limits=Limits(handshake_timeout_s=0.2))
    peer = await tls.loopback.peer(server)
    closed = asyncio.create_task(peer.at_end())
    hello = client_hello(tls.files.tls())
    assert len(hello) * DRIP_INTERVAL_S > 10 * server.limits.handshake_timeout_s
    for byte in hello:
        if closed.done():
            break
        peer.writer.write(bytes([byte]))
        await asyncio.sleep(DRIP_INTERVAL_S)
    assert closed.done()
    await until(lambda: server.counters.tls_failed == 1)


@pytest.mark.parametrize("garbage", [b"\x17\x03\x03\x00\x10" + bytes(16), bytes(64), b"GET / HTTP"])
async def test_garbage_behind_the_handshake_closes_the_connection(
    tls: Tls, garbage: bytes, loop_errors: list[dict[str, Any]]
) -> None:
    server = await tls.server(tls.files.settings())
    await asyncio.to_thread(send_garbage, server, tls.files.tls(), garbage)
    await until(lambda: not server.connections)
    await tls.asks(server, tls.files.tls())
    assert server.counters.tls_opened == 2
    assert not loop_errors


def client_hello(tls: ClientTls) -> bytes:
    """The first bytes of a client."""
    out = ssl.MemoryBIO()
    client = tls.context().wrap_bio(ssl.MemoryBIO(), out)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def damaged(hello: bytes, chance: random.Random) -> bytes:
    """A cut, changed or repeated ClientHello that still begins like one."""
    data = bytearray(hello)
    for _ in range(chance.randint(0, 8)):
        data[chance.randrange(1, len(data))] = chance.randrange(256)
    return bytes(data[: chance.randint(1, len(data))]) * chance.choice((1, 1, 1, 2, 40))


def send_garbage(server: RemotingServer, tls: ClientTls, garbage: bytes) -> None:
    """Send a request with TLS, then bytes that are no TLS record, and wait for the end."""
    plain = socket.create_connection(("127.0.0.1", port_of(server)), timeout=DEADLINE_S)
    with tls.context().wrap_socket(plain) as encrypted:
        encrypted.sendall(request().encode())
        assert encrypted.recv(1024)
        with socket.socket(fileno=os.dup(encrypted.fileno())) as raw:
            raw.settimeout(DEADLINE_S)
            raw.sendall(garbage)
            try:
                while raw.recv(1024):
                    pass
            except ConnectionResetError:
                pass
