"""The request codes of a controller over a real connection: codes, fields and bodies of Java."""

from typing import Any

import msgspec
import pytest

from core_broker.controller.server import Controller
from core_broker.remoting.codes import RequestCode as Request
from core_broker.remoting.codes import ResponseCode as Code
from tests.support.controllers import ControllerClient, Listener, ScriptedBroker
from tests.support.eventually import eventually

SET = "broker-a"


def body(data: bytes) -> Any:
    return msgspec.json.decode(data)


async def test_metadata_names_leader_and_peers(
    controller: Controller, client: ControllerClient
) -> None:
    answer = await client.ask(Request.CONTROLLER_GET_METADATA_INFO)
    own = controller.peers.own.address
    assert answer.code == 0
    assert answer.ext_fields == {
        "group": "controller",
        "controllerLeaderId": "n0",
        "controllerLeaderAddress": own,
        "isLeader": "true",
        "peers": f"n0:{own};",
    }


async def test_a_broker_joins_registers_and_becomes_the_first_master(
    client: ControllerClient,
) -> None:
    broker = ScriptedBroker(client, SET, "127.0.0.1:10911")
    await broker.join()
    assert broker.broker_id == 1
    answer = await broker.register()
    assert answer.ext_fields == {"clusterName": "c", "brokerName": SET}
    assert body(answer.body) == {"syncStateSet": [], "syncStateSetEpoch": 0}

    await broker.beat()
    answer = await broker.elect()
    assert answer.code == 0
    master = {"masterBrokerId": "1", "masterAddress": "127.0.0.1:10911"}
    assert answer.ext_fields == {**master, "masterEpoch": "1", "syncStateSetEpoch": "1"}
    assert body(answer.body) == {
        "brokerMemberGroup": {
            "cluster": "c",
            "brokerName": SET,
            "brokerAddrs": {"1": "127.0.0.1:10911"},
        },
        "syncStateSet": [1],
    }

    again = await broker.elect()
    assert again.code == Code.CONTROLLER_MASTER_STILL_EXIST
    assert again.ext_fields == answer.ext_fields
    assert body(again.body) == {"syncStateSet": [1]}
    registered = await broker.register()
    assert registered.ext_fields == {"clusterName": "c", "brokerName": SET, **answer.ext_fields}


async def test_sync_state_sets(client: ControllerClient, brokers: list[ScriptedBroker]) -> None:
    master, slave = brokers
    fields, present = await master.info()
    assert fields == {"masterBrokerId": "1", "masterAddress": master.address, "masterEpoch": "1"}
    assert present == {"syncStateSet": [1, 2], "syncStateSetEpoch": 2}
    answer = await master.alter(1)
    assert (answer.code, answer.ext_fields) == (0, {"newSyncStateSetEpoch": "3"})
    assert body(answer.body) == {"syncStateSet": [1], "syncStateSetEpoch": 3}
    assert (await slave.alter(1, 2)).code == Code.CONTROLLER_INVALID_MASTER
    assert (await master.alter(1, 9)).code == Code.CONTROLLER_INVALID_REPLICAS
    fenced = await master.alter(1, 2, masterEpoch=0)
    assert fenced.code == Code.CONTROLLER_FENCED_MASTER_EPOCH

    third = ScriptedBroker(client, SET, "127.0.0.1:10913")
    await third.join()  # no heartbeat
    assert (await master.alter(1, 3)).code == Code.CONTROLLER_BROKER_NOT_ALIVE
    answer = await client.ask(Request.CONTROLLER_GET_SYNC_STATE_DATA, [SET, "unknown"])
    assert body(answer.body) == {
        "replicasInfoTable": {
            SET: {
                "masterBrokerId": 1,
                "masterAddress": master.address,
                "masterEpoch": 1,
                "syncStateSetEpoch": 3,
                "inSyncReplicas": [replica(1, master.address, True)],
                "notInSyncReplicas": [
                    replica(2, slave.address, True),
                    replica(3, third.address, False),
                ],
            }
        }
    }


def replica(broker_id: int, address: str, alive: bool) -> dict[str, object]:
    return {
        "brokerName": SET,
        "brokerId": broker_id,
        "brokerAddress": address,
        "alive": alive,
    }


async def test_unknown_sets_have_javas_codes(client: ControllerClient) -> None:
    stranger = ScriptedBroker(client, "nobody", "127.0.0.1:1")
    stranger.broker_id = 1
    answers = {
        Request.CONTROLLER_GET_REPLICA_INFO: await client.ask(
            Request.CONTROLLER_GET_REPLICA_INFO, brokerName="nobody"
        ),
        Request.CONTROLLER_REGISTER_BROKER: await stranger.register(),
        Request.CONTROLLER_ELECT_MASTER: await stranger.elect(),
        Request.CLEAN_BROKER_DATA: await client.ask(
            Request.CLEAN_BROKER_DATA, brokerName="nobody", isCleanLivingBroker=False
        ),
        Request.CONTROLLER_GET_SYNC_STATE_DATA: await client.ask(
            Request.CONTROLLER_GET_SYNC_STATE_DATA
        ),
    }
    assert {request: answer.code for request, answer in answers.items()} == {
        Request.CONTROLLER_GET_REPLICA_INFO: Code.CONTROLLER_BROKER_METADATA_NOT_EXIST,
        Request.CONTROLLER_REGISTER_BROKER: Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
        Request.CONTROLLER_ELECT_MASTER: Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
        Request.CLEAN_BROKER_DATA: Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
        Request.CONTROLLER_GET_SYNC_STATE_DATA: Code.SYSTEM_ERROR,
    }


async def test_an_administrator_designates_a_master_and_all_brokers_are_told(
    client: ControllerClient,
) -> None:
    listeners = [await Listener().start() for _ in range(2)]
    brokers = [ScriptedBroker(client, SET, listener.address) for listener in listeners]
    for broker in brokers:
        await broker.join()
        await broker.beat()
    await brokers[0].elect()
    await brokers[0].alter(1, 2)
    for listener in listeners:
        await eventually(listener.received, 90)
        listener.notices.clear()
    answer = await brokers[0].elect(brokerId=2, designateElect=True)
    assert answer.code == 0
    assert answer.ext_fields["masterBrokerId"] == "2"
    for listener in listeners:
        await eventually(listener.received, 90)
        (notice,) = listener.notices
        assert notice.code == Request.NOTIFY_BROKER_ROLE_CHANGED
        assert notice.is_oneway
        assert notice.ext_fields == {
            "masterBrokerId": "2",
            "masterAddress": listeners[1].address,
            "masterEpoch": "2",
            "syncStateSetEpoch": "3",
        }
        assert body(notice.body) == {"syncStateSet": [2], "syncStateSetEpoch": 3}
    for listener in listeners:
        await listener.stop()


async def test_the_slave_becomes_master_when_the_masters_connection_closes(
    controller: Controller, client: ControllerClient
) -> None:
    own = ControllerClient(client.addr)
    master = ScriptedBroker(own, SET, "127.0.0.1:10911")
    slave = ScriptedBroker(client, SET, "127.0.0.1:10912")
    for broker in (master, slave):
        await broker.join()
        await broker.beat()
    await master.elect()
    await master.alter(1, 2)
    await own.close()

    async def is_replaced() -> bool:
        fields, present = await slave.info()
        return (fields.get("masterBrokerId"), fields["masterEpoch"]) == ("2", "2") and (
            present["syncStateSet"] == [2]
        )

    await eventually(is_replaced, 90)
    assert controller.changes.elections["SUCCESS"] == 2


async def test_the_slave_becomes_master_when_the_master_sends_no_heartbeats(
    brokers: list[ScriptedBroker], client: ControllerClient
) -> None:
    master, slave = brokers
    own = ControllerClient(client.addr)  # the expiry closes the connection
    slave.client = own
    await slave.beat()
    await master.beat(heartbeatTimeoutMills=100)

    async def is_replaced() -> bool:
        return (await slave.info())[0].get("masterBrokerId") == "2"

    await eventually(is_replaced, 90)
    await own.close()


async def test_a_set_without_candidate_loses_its_master_and_gets_it_back(
    brokers: list[ScriptedBroker], client: ControllerClient
) -> None:
    master, slave = brokers
    assert (await master.alter(1)).code == 0
    own = ControllerClient(client.addr)
    slave.client = own
    await slave.beat()
    await master.beat(heartbeatTimeoutMills=100)

    async def master_id() -> str:
        return (await slave.info())[0].get("masterBrokerId", "none")

    async def is_lost() -> bool:
        return await master_id() == "none"

    async def is_back() -> bool:
        return await master_id() == "1"

    await eventually(is_lost, 90)
    refused = await slave.elect()
    assert refused.code == Code.CONTROLLER_ELECT_MASTER_FAILED
    await master.beat()
    await eventually(is_back, 90)
    await own.close()


async def test_an_address_that_changed_is_told_to_others(brokers: list[ScriptedBroker]) -> None:
    master, _ = brokers
    master.address = "127.0.0.9:10911"
    answer = await master.register()
    assert answer.ext_fields["masterAddress"] == "127.0.0.9:10911"
    assert (await master.info())[0]["masterAddress"] == "127.0.0.9:10911"


async def test_brokers_are_cleaned(client: ControllerClient, brokers: list[ScriptedBroker]) -> None:
    master, _ = brokers
    place = {"clusterName": "c", "brokerName": SET}
    for ids in ("2", "x", "1;;;" * 100, "9" * 5000):
        answer = await client.ask(
            Request.CLEAN_BROKER_DATA,
            **place,
            brokerControllerIdsToClean=ids,
            isCleanLivingBroker=False,
        )
        assert answer.code == Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, ids
    answer = await client.ask(
        Request.CLEAN_BROKER_DATA,
        **place,
        brokerControllerIdsToClean="2",
        isCleanLivingBroker=True,
    )
    assert answer.code == 0, "with the switch also living brokers, but only the named ones"
    assert (await master.info())[1]["syncStateSet"] == [1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("enableElectUncleanMaster=true", Code.SUCCESS),
        ("controllerStorePath=/elsewhere", Code.SYSTEM_ERROR),
        ("configStorePath=/elsewhere", Code.NO_PERMISSION),
        ("rocketmqHome=/elsewhere", Code.NO_PERMISSION),
        ("noSuchKey=1", Code.SYSTEM_ERROR),
    ],
)
async def test_settings_are_read_and_updated(
    controller: Controller, client: ControllerClient, text: str, code: Code
) -> None:
    answer = await client.ask(Request.UPDATE_CONTROLLER_CONFIG, text.encode())
    assert answer.code == code
    shown = (await client.ask(Request.GET_CONTROLLER_CONFIG)).body.decode()
    assert (f"{text}\n" in shown) == (code == Code.SUCCESS)
    assert "scanInactiveMasterInterval=100\n" in shown


async def test_other_codes_are_not_supported(client: ControllerClient) -> None:
    answer = await client.ask(Request.GET_BROKER_EPOCH_CACHE)
    assert answer.code == Code.REQUEST_CODE_NOT_SUPPORTED
