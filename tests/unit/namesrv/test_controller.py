"""A controller in a name server: settings of one owner, readiness, metrics, access control."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from core_broker.config import NamesrvConfig
from core_broker.errors import CannotListen
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from namesrv.server import NameServer
from tests.support.cluster import free_broker_port
from tests.support.controllers import ControllerClient, ScriptedBroker, leader_of
from tests.unit.namesrv.namesrv_client import NamesrvClient


@pytest.fixture
def config(config: NamesrvConfig, tmp_path: Path) -> NamesrvConfig:
    return replace(
        config,
        enable_controller_in_namesrv=True,
        controller_d_leger_peers=f"n0-127.0.0.1:{free_broker_port()}",
        controller_store_path=str(tmp_path / "raft"),
    )


@pytest.fixture
async def controller(server: NameServer) -> AsyncIterator[ControllerClient]:
    assert server.controller is not None
    await leader_of([server.controller])
    client = ControllerClient(f"127.0.0.1:{server.controller.port}")
    yield client
    await client.close()


async def test_one_process_has_routes_and_masters(
    server: NameServer, client: NamesrvClient, controller: ControllerClient
) -> None:
    broker = ScriptedBroker(controller, "broker-a", "127.0.0.1:10911")
    await broker.join()
    assert (await broker.elect()).code == 0
    assert (await client.request(Code.GET_BROKER_CLUSTER_INFO)).code == 0
    # Each port has its own codes.
    for code, peer in (
        (Code.CONTROLLER_GET_REPLICA_INFO, client.request),
        (Code.GET_BROKER_CLUSTER_INFO, controller.ask),
    ):
        answer = await peer(code)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert server.varz()["controller"]["broker_sets"]["broker-a"]["master"] == 1
    assert server.readiness.ready
    names = Counter(family.name for family in server._families())
    assert set(names.values()) == {1}
    assert {"rocketmq_namesrv_brokers", "rocketmq_controller_role"} <= set(names)


async def test_a_change_through_either_port_is_in_the_one_file(
    server: NameServer, client: NamesrvClient, controller: ControllerClient
) -> None:
    changed = await controller.ask(Code.UPDATE_CONTROLLER_CONFIG, b"electMasterMaxRetryCount=9\n")
    assert changed.code == 0, changed.remark
    changed = await client.request(
        Code.UPDATE_NAMESRV_CONFIG, body=b"returnOrderTopicConfigToBroker=false\n"
    )
    assert changed.code == 0, changed.remark
    text = Path(server.config.config_store_path).read_text()
    shown = (await client.request(Code.GET_NAMESRV_CONFIG)).body.decode()
    assert shown == (await controller.ask(Code.GET_CONTROLLER_CONFIG)).body.decode()
    for line in ("electMasterMaxRetryCount=9", "returnOrderTopicConfigToBroker=false"):
        assert line in text.splitlines()
        assert line in shown.splitlines()
    assert server.config.elect_master_max_retry_count == 9
    refused = await controller.ask(Code.UPDATE_CONTROLLER_CONFIG, b"kvConfigPath=/x\n")
    assert refused.code == ResponseCode.NO_PERMISSION


async def test_users_of_the_name_server_protect_the_controller(config: NamesrvConfig) -> None:
    user = {"username": "admin", "password": "secret"}
    server = NameServer(
        replace(
            config,
            authentication_enabled=True,
            init_authentication_user=json.dumps(user),
        )
    )
    await server.start()
    assert server.controller is not None
    client = ControllerClient(f"127.0.0.1:{server.controller.port}")
    try:
        for code in sorted(server.controller.request_codes):
            assert (await client.ask(code)).code == ResponseCode.NO_PERMISSION, code
    finally:
        await client.close()
        await server.stop()


async def test_a_port_in_use_ends_the_start(server: NameServer, config: NamesrvConfig) -> None:
    other = NameServer(replace(config, controller_store_path=config.controller_store_path + "2"))
    with pytest.raises(CannotListen, match="controllerRaftPeers"):
        await other.start()
    await other.stop()
