"""Connections between members: who may connect, hostile peers, and peers that do not read."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core_broker.config import TlsSettings
from core_broker.raft.messages import AnyMessage, Heartbeat, SnapshotChunk
from core_broker.raft.model import Membership, SnapshotMeta
from core_broker.raft_member import MemberAddress, MemberSettings, outbound
from core_broker.raft_member.frames import (
    HELLO_BYTES_MAX,
    Hello,
    encode_frame,
    encode_hello,
    encode_message,
    read_frame,
)
from core_broker.raft_member.inbound import UNPROVEN_MAX
from core_broker.raft_member.transport import Transport
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.raft_members import HOST, Group

HEARTBEAT = Heartbeat(2, 1, 1, 0, 0)
HELLO = encode_hello(Hello("mine", 2, 1))


def settings(folder: Path, node_id: int, ports: dict[int, int], **others: object) -> MemberSettings:
    addresses = {each: MemberAddress(HOST, port, "") for each, port in ports.items()}
    values = {"cluster_id": "mine", "node_id": node_id, "addresses": addresses, "folder": folder}
    return MemberSettings(**{**values, **others})  # type: ignore[arg-type]


class Peer:
    """A transport with what it received."""

    def __init__(self, chosen: MemberSettings) -> None:
        self.received: list[AnyMessage] = []
        self.transport = Transport(chosen, self.received.extend)
        self.port = 0


@asynccontextmanager
async def peer(chosen: MemberSettings) -> AsyncIterator[Peer]:
    opened = Peer(chosen)
    opened.port = await opened.transport.start()
    try:
        yield opened
    finally:
        await opened.transport.close()


async def closed_after(port: int, data: bytes) -> bytes:
    """Send bytes; return what came before the other side closed."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(data)
    received = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(60):
            received = await reader.read()
    writer.transport.abort()
    return received


async def test_messages_reach_the_member_that_they_are_for(tmp_path: Path) -> None:
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9})) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port})) as two,
    ):
        two.transport.send([HEARTBEAT])
        assert two.transport.dropped == {1: 1}
        await eventually(lambda: two.transport.connected == {1: True})
        two.transport.send([HEARTBEAT, Heartbeat(2, 5, 1, 0, 0)])
        await eventually(lambda: one.received == [HEARTBEAT])
        assert two.transport.unaddressed == 1
        assert two.transport.connected == {1: True}
        assert one.transport.connected == {2: False}
        two.transport.set_addresses({2: MemberAddress(HOST, 0, "")})
        two.transport.send([HEARTBEAT])
        assert two.transport.unaddressed == 2


async def test_two_clusters_do_not_mix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9})) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port}, cluster_id="other")) as two,
    ):
        await eventually(lambda: one.transport.closings["fault"] >= 2)
        assert not one.received
        assert two.transport.connected == {1: False}
    assert "belongs to cluster 'other', this member to 'mine'" in caplog.text
    assert "belongs to cluster 'mine', this member to 'other'" in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        encode_message(HEARTBEAT),
        encode_hello(Hello("mine", 7, 1)),
        encode_hello(Hello("mine", 1, 1)),
        HELLO + b"\x00" * 100,
        HELLO + encode_frame(b"no messages"),
        HELLO + encode_message(Heartbeat(3, 1, 1, 0, 0)),
        HELLO + HELLO,
    ],
)
async def test_hostile_bytes_close_the_connection_only(tmp_path: Path, data: bytes) -> None:
    async with peer(settings(tmp_path, 1, {1: 0, 2: 9})) as one:
        await closed_after(one.port, data)
        await eventually(lambda: one.transport.closings["fault"] == 1)
        assert not one.received
        reader, writer = await asyncio.open_connection(HOST, one.port)
        writer.write(HELLO + encode_message(HEARTBEAT))
        await read_frame(reader, HELLO_BYTES_MAX)
        await eventually(lambda: one.received == [HEARTBEAT])
        writer.transport.abort()


async def test_only_allowed_addresses_may_connect(tmp_path: Path) -> None:
    allowed = ("192.0.2.0/24",)
    async with peer(settings(tmp_path, 1, {1: 0, 2: 9}, allowed_peers=allowed)) as one:
        assert await closed_after(one.port, HELLO) == b""
        assert one.transport.closings["refused"] == 1
    addresses = {1: MemberAddress(HOST, 0, ""), 2: MemberAddress("192.0.2.1", 9, "")}
    async with peer(settings(tmp_path, 1, {}, addresses=addresses)) as one:
        assert await closed_after(one.port, HELLO) == b""
    addresses[2] = MemberAddress("localhost", 9, "")
    async with peer(settings(tmp_path, 1, {}, addresses=addresses)) as one:
        reader, writer = await asyncio.open_connection(HOST, one.port)
        writer.write(HELLO)
        await read_frame(reader, HELLO_BYTES_MAX)
        writer.transport.abort()


async def test_silent_connections_do_not_lock_members_out(tmp_path: Path) -> None:
    async with peer(settings(tmp_path, 1, {1: 0, 2: 9})) as one:
        silent = [await asyncio.open_connection(HOST, one.port) for _ in range(UNPROVEN_MAX + 5)]
        async with peer(settings(tmp_path, 2, {2: 0, 1: one.port})) as two:
            await eventually(lambda: two.transport.connected == {1: True})
            two.transport.send([HEARTBEAT])
            await eventually(lambda: one.received == [HEARTBEAT])
        assert one.transport.closings["displaced"] >= 5
        for _, writer in silent:
            writer.transport.abort()


async def test_a_peer_that_does_not_read_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "QUEUE_BYTES_MAX", 4 * 1024 * 1024)
    stuck: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stuck.append(writer)
        writer.write(encode_hello(Hello("mine", 3, 2)))
        reader._transport.pause_reading()  # type: ignore[attr-defined]

    server = await asyncio.start_server(accept, HOST, 0)
    stuck_port = server.sockets[0].getsockname()[1]
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9})) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port, 3: stuck_port})) as two,
    ):
        await eventually(lambda: two.transport.connected == {1: True, 3: True})
        snapshot = SnapshotMeta(1, 1, Membership((1, 2, 3)), 1)
        chunk = SnapshotChunk(2, 3, 1, snapshot, 0, bytes(512 * 1024))
        before = two.transport.dropped[1]
        for _ in range(40):
            two.transport.send([chunk])
            await asyncio.sleep(0)
        two.transport.send([HEARTBEAT])
        await eventually(lambda: one.received == [HEARTBEAT])
        assert two.transport.dropped[3] > 10
        assert two.transport.dropped[1] == before
    for writer in stuck:
        writer.transport.abort()
    server.close()


async def test_a_group_works_on_under_hostile_connections(tmp_path: Path) -> None:
    dice = random.Random(3)
    async with Group(tmp_path) as group:
        ports = [address.port for address in group.links.addresses(1).values() if address.port]

        async def attack() -> None:
            for number in range(60):
                hello = encode_hello(Hello("test-cluster", 1, 2)) if number % 2 else b""
                with contextlib.suppress(OSError):
                    await closed_after(dice.choice(ports), hello + dice.randbytes(300))

        attacks = asyncio.gather(*(attack() for _ in range(3)))
        for number in range(20):
            await group.commit("k", str(number))
        await attacks
        await group.commit("k", "end")
        await group.agree()
        assert {machine.values["k"] for machine in group.machines.values()} == {"end"}
        assert all(member.failure is None for member in group.members.values())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def tls(authority: Authority, name: str, mode: str = "enforcing") -> TlsSettings:
    pair = authority.issue(name)
    return TlsSettings(
        tls_server_mode=mode,  # type: ignore[arg-type]
        tls_server_cert_path=pair.cert,
        tls_server_key_path=pair.key,
        tls_server_need_client_auth="require",
        tls_server_auth_client=True,
        tls_server_trust_cert_path=authority.pair.cert,
        tls_client_cert_path=pair.cert,
        tls_client_key_path=pair.key,
        tls_client_auth_server=True,
        tls_client_trust_cert_path=authority.pair.cert,
        tls_client_check_host_name=True,
    )


def with_tls(found: TlsSettings) -> dict[str, object]:
    return {"server_tls": ServerTls(found, "raft"), "client_tls": ClientTls.of(found, {})}


async def test_members_speak_tls(tmp_path: Path, authority: Authority) -> None:
    one_tls, two_tls = tls(authority, "one"), tls(authority, "two")
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9}, **with_tls(one_tls))) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port}, **with_tls(two_tls))) as two,
    ):
        await eventually(lambda: two.transport.connected == {1: True})
        two.transport.send([HEARTBEAT])
        await eventually(lambda: one.received == [HEARTBEAT])
        # A member's bytes without TLS, and a plain hello.
        assert await closed_after(one.port, HELLO + encode_message(HEARTBEAT)) == b""
        assert one.received == [HEARTBEAT]


async def test_a_member_with_a_strange_certificate_is_refused(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(tmp_path / "stranger", "another CA")
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9}, **with_tls(tls(authority, "one")))) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port}, **with_tls(tls(stranger, "two")))) as two,
    ):
        await eventually(lambda: "no trust in its certificate" in caplog.text)
        assert two.transport.connected == {1: False}
        assert not one.transport.closings["accepted"]


async def test_a_permissive_port_takes_members_with_and_without_tls(
    tmp_path: Path, authority: Authority
) -> None:
    both = with_tls(tls(authority, "one", "permissive"))
    async with (
        peer(settings(tmp_path, 1, {1: 0, 2: 9, 3: 9}, **both)) as one,
        peer(settings(tmp_path, 2, {2: 0, 1: one.port})) as plain,
        peer(settings(tmp_path, 3, {3: 0, 1: one.port}, **both)) as secured,
    ):
        await eventually(lambda: plain.transport.connected == {1: True})
        await eventually(lambda: secured.transport.connected == {1: True})
