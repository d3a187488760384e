"""A real broker with TLS under load: compiled fast path, renewal, floods of half-open handshakes.

Sizes are those of a quick run; OVERLOAD_SCALE=10 makes the flood as large as 10,000 connections.
"""

import asyncio
import json
import os
import resource
import shutil
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from core_broker.errors import TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.tls_client import ClientTls
from tests.support.broker_requests import pull_header, send_header
from tests.support.canary import Canary, missing
from tests.support.certificates import Authority, Pair
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

SCALE = int(os.environ.get("OVERLOAD_SCALE", "1"))
HELLOS = 1_000 * SCALE
HANDSHAKES_MAX = Limits().handshakes_max
CONNECTIONS, SENDS = 16, 40
TIMEOUT_MS = 60_000.0
#: The beginning of a ClientHello that announces more bytes.
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(20)

pytestmark = pytest.mark.timeout(300)


class Broker:
    """A broker with TLS, the CA, and clients."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.authority = Authority(folder / "ca")
        self.pair = Pair(str(folder / "cert.pem"), str(folder / "key.pem"))
        self.renew(self.authority.issue("first"))
        settings: dict[str, Any] = {
            "tls_test_mode_enable": False,
            "tls_server_cert_path": self.pair.cert,
            "tls_server_key_path": self.pair.key,
        }
        self.cluster = stack.enter_context(Cluster(folder, both=settings))
        self.addr = self.cluster.broker_addr
        self.tls = ClientTls(trust_cert_path=self.authority.pair.cert)

    def renew(self, issued: Pair) -> None:
        """Replace certificate and key, as two writes."""
        shutil.copy(issued.cert, self.pair.cert)
        if issued.key != self.pair.key:
            shutil.copy(issued.key, self.pair.key)

    def varz(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.cluster.http_ports['broker']}/varz"
        with urllib.request.urlopen(url, timeout=60) as page:
            varz: dict[str, Any] = json.load(page)
            return varz


@pytest_asyncio.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    with ExitStack() as stack:
        yield await asyncio.to_thread(Broker, tmp_path, stack)


def client_of(name: str, tls: ClientTls | None) -> RemotingClient:
    """A client that waits for handshakes of a busy broker."""
    return RemotingClient(name=name, tls=tls, connect_timeout_ms=int(TIMEOUT_MS))


async def send(client: RemotingClient, addr: str, topic: str, body: bytes) -> int:
    """Send a message; return its offset."""
    request = RemotingCommand.request(310, send_header(topic), body)
    answer = await client.invoke(addr, request, TIMEOUT_MS)
    assert answer.code == 0, answer
    return int(answer.ext_fields["queueOffset"])


async def pull(client: RemotingClient, addr: str, topic: str, offset: int) -> RemotingCommand:
    return await client.invoke(
        addr, RemotingCommand.request(11, pull_header(topic, offset)), TIMEOUT_MS
    )


async def test_the_fast_paths_serve_plain_and_tls_connections(broker: Broker) -> None:
    """Long answers of many connections at a time, which a thread sends for plain connections.

    How many requests the compiled path takes depends on the load of the machine.
    """
    half = CONNECTIONS // 2
    taken = [(0, 0)]
    for round_, kinds in enumerate(([None] * half, [broker.tls] * half, [None, broker.tls] * half)):
        await check_traffic(broker, f"Traffic{round_}", kinds)
        kernel = (await asyncio.to_thread(broker.varz))["kernel"]
        taken.append((kernel["messages_sent"], kernel["messages_pulled"]))
    varz = await asyncio.to_thread(broker.varz)
    assert varz["remoting"]["tls_opened"] == 2 * half
    if varz["kernel"]["is_compiled"]:
        for (sent, pulled), (sent_later, pulled_later) in pairwise(taken):
            assert sent_later > sent
            assert pulled_later > pulled


async def check_traffic(broker: Broker, name: str, kinds: Sequence[ClientTls | None]) -> None:
    """Each client sends to its topic, with many requests in flight, and reads the messages."""
    clients = [client_of(f"client-{i}", tls) for i, tls in enumerate(kinds)]

    async def one(number: int, client: RemotingClient) -> None:
        topic = f"{name}-{number}"
        bodies = [f"{number}-{i}".encode() * 300 for i in range(SENDS)]
        await send(client, broker.addr, topic, bodies[0])
        sends = (send(client, broker.addr, topic, body) for body in bodies[1:])
        offsets = [0, *await asyncio.gather(*sends)]
        pulls = (pull(client, broker.addr, topic, offset) for offset in offsets)
        for body, answer in zip(bodies, await asyncio.gather(*pulls), strict=True):
            assert body in answer.body

    await asyncio.gather(*(one(*each) for each in enumerate(clients)))
    for client in clients:
        await client.close()


async def test_renewal_under_load_breaks_no_connection(broker: Broker) -> None:
    """A new key first, then a new certificate of the same key; sends go on all the time."""
    clients = [client_of(f"sender-{i}", broker.tls) for i in range(4)]
    is_over = False
    sent: list[int] = []

    async def load(client: RemotingClient) -> None:
        while not is_over:
            sent.append(await send(client, broker.addr, "Renewal", b"message"))

    tasks = [asyncio.create_task(load(client)) for client in clients]
    await eventually(lambda: len(sent) > 100, timeout_s=60)
    for count, key in ((1, ""), (2, broker.pair.key)):
        issued = broker.authority.issue(f"renewed-{count}", days=60 + count, key=key)
        broker.renew(issued)
        await eventually(reloads_of(broker, count), timeout_s=60)
        serial = await asyncio.to_thread(served_certificate, broker)
        assert serial in Path(issued.cert).read_text()
        await eventually(partial(has_grown, sent, len(sent) + 100), timeout_s=60)
    is_over = True
    await asyncio.gather(*tasks)
    assert sorted(sent) == list(range(len(sent)))
    varz = await asyncio.to_thread(broker.varz)
    # Senders, and two connections that read the certificate.
    assert varz["remoting"]["tls_opened"] == len(clients) + 2
    # A check between the two writes may have found a key of another certificate.
    assert varz["tls"]["problem"] == ""
    for client in clients:
        await client.close()


def has_grown(sent: list[int], count: int) -> bool:
    return len(sent) > count


def reloads_of(broker: Broker, count: int) -> Any:
    async def probe() -> bool:
        varz = await asyncio.to_thread(broker.varz)
        return bool(varz["tls"]["reloads"] >= count)

    return probe


def served_certificate(broker: Broker) -> str:
    """The base64 lines of the broker's certificate for a new connection."""
    host, _, port = broker.addr.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as plain,
        broker.tls.context().wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        der = encrypted.getpeercert(binary_form=True)
    assert der is not None
    pem = ssl.DER_cert_to_PEM_cert(der)
    return pem.partition("-----\n")[2].partition("\n-----")[0]


async def test_half_open_handshakes_lock_nobody_out(broker: Broker) -> None:
    """Honest clients with and without TLS are served beside thousands of half-open handshakes."""
    _raise_own_limit(HELLOS + 500)
    canary = await asyncio.to_thread(Canary, broker.addr)
    honest = client_of("honest", broker.tls)
    await send(honest, broker.addr, "Honest", b"before")
    host, _, port = broker.addr.rpartition(":")
    peers: list[socket.socket] = []
    try:
        for number in range(HELLOS):
            peer = socket.create_connection((host, int(port)), timeout=60)
            peers.append(peer)
            peer.send(HELLO if number % 2 else HELLO[:1])
            if number % 100 == 0:
                late = client_of(f"late-{number}", broker.tls)
                await send(late, broker.addr, "Honest", b"during")
                await late.close()
        await eventually(partial(has_ended, broker, HELLOS - HANDSHAKES_MAX), timeout_s=60)
    finally:
        for peer in peers:
            peer.close()
    messages = await asyncio.to_thread(canary.stop)
    assert all(each.code == 0 for each in messages)
    assert not await missing(broker.addr, messages)
    await send(honest, broker.addr, "Honest", b"after")
    await honest.close()


async def has_ended(broker: Broker, count: int) -> bool:
    """Whether so many handshakes were displaced, or on a slow machine late."""
    remoting = (await asyncio.to_thread(broker.varz))["remoting"]
    return bool(remoting["tls_displaced"] + remoting["tls_failed"] >= count)


async def test_an_enforcing_broker_refuses_plain_requests(broker: Broker) -> None:
    settings = {
        "tls_server_mode": "enforcing",
        "tls_client_trust_cert_path": broker.tls.trust_cert_path,
    }
    await asyncio.to_thread(broker.cluster.restart_broker, **settings)
    plain = client_of("plain", None)
    with pytest.raises(TransportError):
        await send(plain, broker.addr, "Plain", b"refused")
    encrypted = client_of("encrypted", broker.tls)
    assert await send(encrypted, broker.addr, "Plain", b"stored") == 0
    said = "tls.server.mode is enforcing"
    await eventually(lambda: said in broker.cluster.broker.printed, timeout_s=60)
    for client in (plain, encrypted):
        await client.close()


def _raise_own_limit(descriptors: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(descriptors, hard), hard))
