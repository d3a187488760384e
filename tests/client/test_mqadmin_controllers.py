"""mqadmin's commands for controllers and replicas, on three running controllers."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from core_broker.controller.server import Controller
from core_broker.remoting.bodies import HAClientRuntimeInfo, HARuntimeInfo, encode_body
from core_broker.remoting.bodies.replicas import EpochEntryCache, EpochEntryInfo
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import free_broker_port
from tests.support.controllers import (
    ControllerClient,
    ScriptedBroker,
    controller_configs,
    leader_of,
)
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer

NAME = "broker-a"


class Commands:
    """Runs commands in a thread, while servers run on the test's event loop."""

    def __init__(self, namesrv_addr: str, controllers: list[str]) -> None:
        self._mqadmin = Mqadmin(namesrv_addr)
        self.at = ("-a", ";".join(controllers))

    async def result(self, *arguments: str, code: int = 0) -> Result:
        return await asyncio.to_thread(partial(self._mqadmin, *arguments, code=code))

    async def lines(self, *arguments: str) -> list[str]:
        return (await self.result(*arguments)).stdout.splitlines()

    async def document(self, *arguments: str) -> Any:
        return await asyncio.to_thread(self._mqadmin.document, *arguments)


@pytest.fixture
async def controllers(tmp_path: Path) -> AsyncIterator[list[Controller]]:
    started = [Controller(config) for config in controller_configs(tmp_path, 3)]
    try:
        for one in started:
            await one.start()
        await leader_of(started)
        yield started
    finally:
        for one in started:
            await one.stop()


@pytest.fixture
def commands(quick_cluster: ClusterAddrs, controllers: list[Controller]) -> Commands:
    """Commands with a dead controller first in their list."""
    dead = f"127.0.0.1:{free_broker_port()}"
    known = [one.peers.own.address for one in controllers if not one.member.is_leader]
    return Commands(quick_cluster.namesrv_addr, [dead, *known])


@pytest.fixture
async def brokers(controllers: list[Controller]) -> AsyncIterator[list[ScriptedBroker]]:
    """Three brokers of a set; the first is master, the first two are in sync."""
    client = ControllerClient((await leader_of(controllers)).peers.own.address)
    found = [ScriptedBroker(client, NAME, f"127.0.0.1:1091{n}") for n in (1, 2, 3)]
    for broker in found:
        await broker.join()
    for broker in found[:2]:
        await broker.beat()
    assert (await found[0].elect()).code == 0
    assert (await found[0].alter(1, 2)).code == 0
    yield found
    await client.close()


async def test_metadata(controllers: list[Controller], commands: Commands) -> None:
    leader = await leader_of(controllers)
    name, address = leader.peers.own.name, leader.peers.own.address
    peers = [f"n{n}:{one.peers.own.address}" for n, one in enumerate(controllers)]
    assert await commands.lines("getControllerMetaData", *commands.at) == [
        "",
        "#ControllerGroup\tcontroller",
        f"#ControllerLeaderId\t{name}",
        f"#ControllerLeaderAddress\t{address}",
        *(f"#Peer:\t{peer}" for peer in peers),
    ]
    document = await commands.document("getControllerMetaData", *commands.at)
    assert (document["controllerLeaderId"], document["peers"]) == (name, peers)


async def test_the_replicas_of_a_broker_set(
    brokers: list[ScriptedBroker], commands: Commands
) -> None:
    wanted = ("getSyncStateSet", *commands.at, "-b", NAME)
    replica = "ReplicaIdentity{{brokerName='broker-a', brokerId={0}, "
    replica += "brokerAddress='127.0.0.1:1091{0}', alive={1}}}"
    assert await commands.lines(*wanted) == [
        "",
        "#brokerName\tbroker-a",
        "#MasterBrokerId\t1",
        "#MasterAddr\t127.0.0.1:10911",
        "#MasterEpoch\t1",
        "#SyncStateSetEpoch\t2",
        "#SyncStateSetNums\t2",
        *("", "InSyncReplica:\t" + replica.format(1, "true")),
        *("", "InSyncReplica:\t" + replica.format(2, "true")),
        *("", "NotInSyncReplica:\t" + replica.format(3, "false")),
    ]
    entry = (await commands.document(*wanted))["brokers"][NAME]
    assert (entry["masterEpoch"], entry["notInSyncReplicas"][0]["brokerId"]) == (1, 3)
    unknown = await commands.result("getSyncStateSet", *commands.at, "-b", "nobody", code=1)
    assert "no broker set nobody" in unknown.stderr
    neither = await commands.result("getSyncStateSet", *commands.at, code=2)
    assert "-b/--brokerName" in neither.stderr


async def test_an_election(brokers: list[ScriptedBroker], commands: Commands) -> None:
    wanted = ("electMaster", *commands.at, "-bn", NAME, "-c", "c", "-b")
    assert await commands.lines(*wanted, "2", "--dry-run") == [
        "[dry run] broker 2 of broker-a becomes master"
    ]
    assert (await brokers[0].info())[0]["masterBrokerId"] == "1"
    refused = await commands.result(*wanted, "3", code=1)
    assert "CONTROLLER_ELECT_MASTER_FAILED" in refused.stderr
    assert await commands.lines(*wanted, "2") == [
        "",
        "#ClusterName\tc",
        "#BrokerName\tbroker-a",
        "#BrokerMasterAddr\t127.0.0.1:10912",
        "#MasterEpoch\t2",
        "#SyncStateSetEpoch\t3",
    ]
    assert (await brokers[0].info())[0]["masterBrokerId"] == "2"
    assert (await brokers[1].alter(1, 2)).code == 0
    document = await commands.document(*wanted, "1")
    assert (document["masterBrokerId"], document["masterEpoch"]) == (1, 3)
    assert document["brokerAddrs"]["2"] == "127.0.0.1:10912"


async def test_the_removal_of_a_replica(brokers: list[ScriptedBroker], commands: Commands) -> None:
    wanted = ("cleanBrokerMetadata", *commands.at, "-bn", NAME)
    assert "-c/--clusterName" in (await commands.result(*wanted, "-b", "3", code=2)).stderr
    malformed = await commands.result(*wanted, "-c", "c", "-b", "3;x", code=2)
    assert "1;2;3" in malformed.stderr
    refused = await commands.result(*wanted, "-c", "c", "-b", "2", code=1)
    assert "CONTROLLER_INVALID_CLEAN_BROKER_METADATA" in refused.stderr
    done = "clear broker broker-a metadata from controller success! "
    dry = await commands.lines(*wanted, "-c", "c", "-b", "3", "--dry-run")
    assert dry == [f"[dry run] {done}"]
    assert await commands.lines(*wanted, "-c", "c", "-b", "3") == [done]
    set_lines = await commands.lines("getSyncStateSet", *commands.at, "-b", NAME)
    assert not any("NotInSyncReplica" in line for line in set_lines)


async def test_settings_of_controllers(controllers: list[Controller], commands: Commands) -> None:
    addrs = [one.peers.own.address for one in controllers]
    at, key = ("-a", ";".join(addrs)), "electMasterMaxRetryCount"
    wanted = ("updateControllerConfig", *at, "-k", key, "-v", "7")
    text = [f"update controller config success![{', '.join(addrs)}]", f"{key} : 7"]
    assert await commands.lines(*wanted, "--dry-run") == [f"[dry run] {text[0]}", text[1]]
    assert {one.config.elect_master_max_retry_count for one in controllers} == {3}
    assert await commands.lines(*wanted) == text
    lines = await commands.lines("getControllerConfig", *at)
    assert [line for line in lines if line.startswith("=")] == [
        f"============{a}============" for a in addrs
    ]
    assert lines.count(f"{key:<50}=  7") == 3
    document = await commands.document("getControllerConfig", *at)
    assert [document["controllers"][addr][key] for addr in addrs] == ["7", "7", "7"]
    forbidden = await commands.result(*wanted[:3], "-k", "configStorePath", "-v", "x", code=1)
    assert "black list" in forbidden.stderr


async def test_a_group_without_leader(controllers: list[Controller], commands: Commands) -> None:
    leader = await leader_of(controllers)
    (left, other) = [one for one in controllers if one is not leader]
    await leader.stop()
    await other.stop()

    async def is_alone() -> bool:
        await asyncio.sleep(0)
        return left.member.leader_id is None

    await eventually(is_alone, 60)
    at = ("-a", left.peers.own.address)
    assert "#ControllerLeaderId\tnull" in await commands.lines("getControllerMetaData", *at)
    failed = await commands.result("getSyncStateSet", *at, "-b", NAME, code=1)
    assert "no leader: a majority of them must run" in failed.stderr


async def test_epochs_of_brokers(commands: Commands) -> None:
    epochs = EpochEntryCache(
        cluster_name="DefaultCluster",
        broker_name=NAME,
        broker_id=0,
        epoch_list=[
            EpochEntryInfo(epoch=1, start_offset=0, end_offset=500),
            EpochEntryInfo(epoch=3, start_offset=500, end_offset=2**63 - 1),
        ],
        max_offset=900,
    )
    async with ScriptedPeer() as peer:
        peer.on(
            Code.GET_BROKER_EPOCH_CACHE,
            lambda _: RemotingCommand.response(body=encode_body(epochs)),
        )
        peer.on(
            Code.GET_BROKER_CLUSTER_INFO,
            lambda _: RemotingCommand.response(
                body=b'{"clusterAddrTable":{"DefaultCluster":["broker-a"]},"brokerAddrTable":'
                b'{"broker-a":{"brokerName":"broker-a","cluster":"DefaultCluster",'
                b'"brokerAddrs":{"0":"%s"}}}}' % peer.addr.encode()
            ),
        )
        for where in (("-b", NAME), ("-c", "DefaultCluster")):
            assert await commands.lines("getBrokerEpoch", "-n", peer.addr, *where) == [
                "",
                "#clusterName\tDefaultCluster",
                "#brokerName\tbroker-a",
                f"#brokerAddr\t{peer.addr}",
                "#brokerId\t0",
                "#Epoch: EpochEntry{epoch=1, startOffset=0, endOffset=500}",
                "#Epoch: EpochEntry{epoch=3, startOffset=500, endOffset=900}",
            ]
        document = await commands.document("getBrokerEpoch", "-n", peer.addr, "-b", NAME)
        assert document["brokers"][peer.addr]["epochList"][1]["endOffset"] == 900
        unknown = await commands.result("getBrokerEpoch", "-n", peer.addr, "-b", "nobody", code=1)
        assert "no broker nobody" in unknown.stderr


async def test_a_broker_without_epochs(commands: Commands, quick_cluster: ClusterAddrs) -> None:
    failed = await commands.result("getBrokerEpoch", "-c", "DefaultCluster", code=1)
    assert "this request only for controllerMode" in failed.stderr


async def test_the_flush_offset_of_a_slaves_master(commands: Commands) -> None:
    offsets: list[int] = []

    def reset(request: RemotingCommand) -> RemotingCommand:
        offsets.append(int(request.ext_fields["masterFlushOffset"]))
        return RemotingCommand.response()

    info = HARuntimeInfo(master=False, ha_client_runtime_info=HAClientRuntimeInfo())
    async with ScriptedPeer() as peer:
        peer.on(Code.RESET_MASTER_FLUSH_OFFSET, reset)
        peer.on(
            Code.GET_BROKER_HA_STATUS, lambda _: RemotingCommand.response(body=encode_body(info))
        )
        lines = await commands.lines("resetMasterFlushOffset", "-b", peer.addr, "-o", "4096")
    assert (lines, offsets) == (["reset master flush offset to 4096 success"], [4096])
