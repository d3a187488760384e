"""Who may talk to controllers: certificates, and lists of addresses."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core_broker.broker.controllers import Controllers
from core_broker.client import AclRpcHook
from core_broker.config import BrokerConfig, ControllerConfig
from core_broker.controller.server import Controller
from core_broker.errors import ConnectFailed, SettingsError, StoreCorrupt, TransportError
from core_broker.remoting.bodies import UserInfo, encode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.controller import GetNextBrokerIdRequestHeader
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

INNER = '{"accessKey":"admin","secretKey":"12345678"}'


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


async def test_raft_asks_for_certificates_and_the_other_port_does_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    pair = authority.issue("controller")
    files: dict[str, Any] = {
        "tls_server_mode": "permissive",
        "tls_server_cert_path": pair.cert,
        "tls_server_key_path": pair.key,
        "tls_server_trust_cert_path": authority.pair.cert,
        "tls_client_cert_path": pair.cert,
        "tls_client_key_path": pair.key,
        "tls_client_auth_server": True,
        "tls_client_trust_cert_path": authority.pair.cert,
        "raft_tls_need_client_auth": True,
    }
    started = [Controller(config) for config in controller_configs(tmp_path, 3, **files)]
    without = ClientTls(trust_cert_path=authority.pair.cert)
    try:
        for one in started:
            await one.start()
        leader = await leader_of(started)
        assert await metadata(leader.peers.own.address) == 0
        assert await metadata(leader.peers.own.address, without) == 0
        for tls in (without, None):
            with pytest.raises(TransportError):
                await metadata(f"127.0.0.1:{leader.raft_port}", tls)
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


@asynccontextmanager
async def running(config: ControllerConfig) -> AsyncIterator[Controller]:
    controller = Controller(config)
    await controller.start()
    try:
        await leader_of([controller])
        yield controller
    finally:
        await controller.stop()


@pytest.fixture
def guarded_config(tmp_path: Path) -> ControllerConfig:
    """A controller that admits super users only; `admin` is one."""
    return controller_configs(
        tmp_path,
        1,
        authentication_enabled=True,
        authorization_enabled=True,
        inner_client_authentication_credentials=INNER,
    )[0]


@pytest.fixture
async def guarded(guarded_config: ControllerConfig) -> AsyncIterator[Controller]:
    async with running(guarded_config) as controller:
        yield controller


def signed(controller: Controller, name: str, password: str) -> ControllerClient:
    hook = AclRpcHook(name, password)
    return ControllerClient(controller.peers.own.address, [hook])


async def test_only_super_users_use_a_guarded_controller(guarded: Controller) -> None:
    """Every code, unsigned, by an unknown name, with a wrong key, and by a user without rights."""
    admin = signed(guarded, "admin", "12345678")
    user = encode_body(UserInfo(username="alice", password="secret"))
    assert (await admin.ask(Code.AUTH_CREATE_USER, user, username="alice")).code == 0
    senders = [
        ControllerClient(admin.addr),
        signed(guarded, "mallory", "x"),
        signed(guarded, "admin", "guessed"),
        signed(guarded, "alice", "secret"),
    ]
    fields = {"clusterName": "c", "brokerName": "broker-a", "brokerId": 1, "username": "alice"}
    for sender in senders:
        for code in sorted(guarded.request_codes):
            answer = await sender.ask(code, b"electMasterMaxRetryCount=9", **fields)
            assert answer.code == ResponseCode.NO_PERMISSION, (code, answer.remark)
            assert not answer.body
        await sender.close()
    assert guarded.config.elect_master_max_retry_count != 9
    assert guarded.varz()["broker_sets"] == {}
    refused = guarded.varz()["access_control"]["refused"]
    assert sum(refused.values()) == len(senders) * len(guarded.request_codes)
    broker = ScriptedBroker(admin, "broker-a", "127.0.0.1:10911")
    await broker.join()
    assert (await broker.elect()).code == 0
    await admin.close()


async def test_users_of_a_controller_survive_a_restart(guarded_config: ControllerConfig) -> None:
    async with running(guarded_config) as controller:
        admin = signed(controller, "admin", "12345678")
        user = encode_body(UserInfo(username="root", password="secret", user_type="Super"))
        assert (await admin.ask(Code.AUTH_CREATE_USER, user, username="root")).code == 0
        changed = await admin.ask(Code.UPDATE_CONTROLLER_CONFIG, b"electMasterMaxRetryCount=9\n")
        assert changed.code == 0, changed.remark
        await admin.close()
    folder = Path(guarded_config.controller_store_path)
    for file in (folder / "auth.json", Path(guarded_config.config_store_path)):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with running(guarded_config) as again:
        root = signed(again, "root", "secret")
        assert (await root.ask(Code.CONTROLLER_GET_METADATA_INFO)).code == 0
        await root.close()


async def test_a_refused_broker_names_its_setting(guarded: Controller) -> None:
    config = BrokerConfig(controller_addr=guarded.peers.own.address)
    controllers = Controllers(lambda: config, None, [])
    header = GetNextBrokerIdRequestHeader(cluster_name="c", broker_name="broker-a")
    with pytest.raises(ConnectFailed, match="innerClientAuthenticationCredentials"):
        await controllers.ask(Code.CONTROLLER_GET_NEXT_BROKER_ID, header)
    await controllers.close()


def test_a_controller_authorizes_users_only(tmp_path: Path) -> None:
    config = controller_configs(tmp_path, 1, authorization_enabled=True)[0]
    with pytest.raises(SettingsError, match="authenticationEnabled=true"):
        Controller(config)


async def test_damaged_users_stop_the_start_of_a_controller(tmp_path: Path) -> None:
    config = controller_configs(tmp_path, 1, authentication_enabled=True)[0]
    folder = Path(config.controller_store_path)
    folder.mkdir()
    (folder / "auth.json").write_text("{")
    controller = Controller(config)
    with pytest.raises(StoreCorrupt, match=r"auth\.json"):
        await controller.start()
    await controller.stop()


@pytest.mark.parametrize("is_signed", [True, False])
async def test_notices_are_signed_with_credentials(tmp_path: Path, is_signed: bool) -> None:
    """Brokers with access control admit signed notices only."""
    inner = INNER if is_signed else ""
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
