"""Who may talk to controllers: certificates, and lists of addresses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core_broker.controller.server import Controller
from core_broker.errors import SettingsError, TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.tls_client import ClientTls
from tests.support.certificates import Authority
from tests.support.controllers import (
    ControllerClient,
    Listener,
    ScriptedBroker,
    controller_configs,
    leader_of,
)
from tests.support.eventually import eventually


async def metadata(addr: str, tls: ClientTls | None = None) -> int:
    """Ask a controller; return the code of the answer."""
    client = RemotingClient(name="test", tls=tls)
    try:
        request = RemotingCommand.request(Code.CONTROLLER_GET_METADATA_INFO)
        return (await client.invoke(addr, request, 30_000)).code
    finally:
        await client.close()


async def test_a_group_with_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    pair = authority.issue("controller")
    files: dict[str, Any] = {
        "tls_server_mode": "enforcing",
        "tls_server_cert_path": pair.cert,
        "tls_server_key_path": pair.key,
        "tls_server_need_client_auth": "require",
        "tls_server_auth_client": True,
        "tls_server_trust_cert_path": authority.pair.cert,
        "tls_client_cert_path": pair.cert,
        "tls_client_key_path": pair.key,
        "tls_client_auth_server": True,
        "tls_client_trust_cert_path": authority.pair.cert,
    }
    configs = controller_configs(tmp_path, 3, **files)
    started = [Controller(config) for config in configs]
    try:
        for one in started:
            await one.start()
        leader = await leader_of(started)
        assert all(
            leader.member.status().peers[n].is_connected
            for n in (1, 2, 3)
            if n != leader.peers.self_number
        )
        addr = leader.peers.own.address
        assert await metadata(addr, ClientTls.of(configs[0], {})) == 0
        with pytest.raises(TransportError):
            await metadata(addr)
        without = ClientTls(trust_cert_path=authority.pair.cert)
        with pytest.raises(TransportError):
            await metadata(addr, without)
    finally:
        for one in started:
            await one.stop()


async def test_addresses_off_the_lists(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lists = {"controller_allowed_addresses": "192.0.2.7", "raft_allowed_addresses": "192.0.2.0/24"}
    controller = Controller(controller_configs(tmp_path, 1, **lists)[0])
    await controller.start()
    client = ControllerClient(controller.peers.own.address)
    try:
        with pytest.raises(TransportError):
            await client.ask(Code.CONTROLLER_GET_METADATA_INFO)
        assert "controllerAllowedAddresses" in caplog.text
        reader, writer = await asyncio.open_connection("127.0.0.1", controller.raft_port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        assert "not in the allow list" in caplog.text
    finally:
        await client.close()
        await controller.stop()


@pytest.mark.parametrize("key", ["controllerAllowedAddresses", "raftAllowedAddresses"])
def test_a_list_of_no_use_ends_the_start(tmp_path: Path, key: str) -> None:
    attribute = {"c": "controller_allowed_addresses", "r": "raft_allowed_addresses"}[key[0]]
    config = controller_configs(tmp_path, 1, **{attribute: "controller.example.org"})[0]
    with pytest.raises(SettingsError, match=key):
        Controller(config)


@pytest.mark.parametrize("is_signed", [True, False])
async def test_notices_are_signed_with_credentials(tmp_path: Path, is_signed: bool) -> None:
    """Brokers with access control admit signed notices only."""
    inner = '{"accessKey":"admin","secretKey":"12345678"}' if is_signed else ""
    config = controller_configs(tmp_path, 1, inner_client_authentication_credentials=inner)[0]
    controller, listener = Controller(config), await Listener().start()
    await controller.start()
    await leader_of([controller])
    client = ControllerClient(controller.peers.own.address)
    try:
        broker = ScriptedBroker(client, "broker-a", listener.address)
        await broker.join()
        await broker.beat()
        assert (await broker.elect()).code == 0
        await eventually(listener.received, 90)
        fields = listener.notices[0].ext_fields
        assert (fields.get("AccessKey") == "admin") is is_signed
        assert ("Signature" in fields) is is_signed
    finally:
        await client.close()
        await controller.stop()
        await listener.stop()
