"""Who may connect to the port of a member."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from core_broker.auth.acl2.source_addresses import peer_address
from core_broker.config import BrokerConfig
from core_broker.dledger.codes import DLedgerRequest
from core_broker.dledger.messages import MetadataRequest, MetadataResponse, encode
from core_broker.dledger.peers import Group, group_of
from core_broker.dledger.transport import Token, Transport
from core_broker.errors import SettingsError
from core_broker.raft_member import admission
from core_broker.remoting.command import RemotingCommand
from tests.support.cluster import free_broker_port
from tests.support.eventually import eventually

Start = Callable[..., Awaitable[Group]]


def group_at(host: str) -> Group:
    """A group whose members are on one host."""
    peers = ";".join(f"n{number}-{host}:{free_broker_port()}" for number in range(3))
    return group_of(BrokerConfig(broker_name="b", d_leger_peers=peers, d_leger_self_id="n0"))


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    """Return a function that opens the port of member n0."""
    running: list[Transport] = []

    async def open_port(host: str, **settings: Any) -> Group:
        def serve(_: object, token: Token) -> None:
            transport.answer(token, MetadataResponse())

        group = group_at(host)
        config = BrokerConfig(bind_address="127.0.0.1", **settings)
        transport = Transport(group, config, serve, lambda leader: None)
        running.append(transport)
        await transport.start()
        return group

    yield open_port
    for transport in running:
        await transport.close()


async def is_served(group: Group, source: str) -> bool:
    """Whether the port answers a peer with an address."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", group.own.port, local_addr=(source, 0)
    )
    try:
        body = encode(MetadataRequest(group=group.name, remote_id="n0"))
        writer.write(RemotingCommand.request(DLedgerRequest.METADATA, body=body).encode())
        return bool(await reader.read(4))
    except ConnectionError:
        return False
    finally:
        writer.close()


async def test_the_hosts_of_the_peers_may_connect_without_a_list(start: Start) -> None:
    group = await start("127.0.0.1")
    assert await is_served(group, "127.0.0.1")
    assert not await is_served(group, "127.0.0.2")


class Names:
    """The answers of the resolver: addresses by name; other names have none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: dict[str, str] = {}
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._find)

    def _find(self, host: Any, port: Any, *args: Any, **named: Any) -> Any:
        found = self.addresses.get(host, host)
        if peer_address(found) is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._real(found, port, *args, **named)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


async def test_names_of_peers_are_resolved(start: Start, names: Names) -> None:
    names.addresses["n.example.org"] = "127.0.0.1"
    group = await start("n.example.org")
    assert await eventually(lambda: is_served(group, "127.0.0.1"))
    assert not await is_served(group, "127.0.0.2")


async def test_a_failed_lookup_keeps_the_addresses(
    start: Start, names: Names, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admission, "RESOLUTION_INTERVAL_S", 0.0)
    names.addresses["n.example.org"] = "127.0.0.1"
    group = await start("n.example.org")
    assert await eventually(lambda: is_served(group, "127.0.0.1"))
    names.addresses.clear()
    assert not await is_served(group, "127.0.0.2")
    await eventually(lambda: "n.example.org of dLegerPeers has no address" in caplog.text)
    assert await is_served(group, "127.0.0.1")
    names.addresses["n.example.org"] = "127.0.0.3"
    assert await eventually(lambda: is_served(group, "127.0.0.3"))
    assert not await is_served(group, "127.0.0.1")


async def test_a_list_replaces_the_peers(start: Start) -> None:
    group = await start("127.0.0.1", ha_allowed_addresses="127.0.0.2/32")
    assert await is_served(group, "127.0.0.2")
    assert not await is_served(group, "127.0.0.1")


async def test_access_control_does_not_narrow_the_peers(start: Start) -> None:
    group = await start("127.0.0.2", acl_enable=True)
    assert await is_served(group, "127.0.0.2")


async def test_a_host_without_an_address_is_named_with_its_setting(
    start: Start, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    await start("no-such-host.invalid")
    await eventually(lambda: "no-such-host.invalid of dLegerPeers" in caplog.text)


async def test_a_wrong_list_is_a_settings_error() -> None:
    config = BrokerConfig(ha_allowed_addresses="n1.example.org")
    with pytest.raises(SettingsError, match="haAllowedAddresses"):
        Transport(group_at("127.0.0.1"), config, lambda *_: None, lambda leader: None)
