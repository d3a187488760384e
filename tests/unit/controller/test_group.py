"""Groups of controllers: restarts, followers, and the loss of the leader."""

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from core_broker.config import ControllerConfig
from core_broker.controller.server import Controller
from core_broker.remoting.codes import RequestCode as Request
from core_broker.remoting.codes import ResponseCode as Code
from tests.support.controllers import (
    ControllerClient,
    ScriptedBroker,
    controller_configs,
    leader_of,
)
from tests.support.eventually import eventually

SET = "broker-a"


class Group:
    """Running controllers, and a client of each."""

    def __init__(self, configs: list[ControllerConfig]) -> None:
        self.configs = configs
        self.controllers: dict[str, Controller] = {}
        self.clients: dict[str, ControllerClient] = {}

    async def __aenter__(self) -> "Group":
        for config in self.configs:
            await self.start(config)
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self.controllers):
            await self.stop(name)

    async def start(self, config: ControllerConfig) -> None:
        """Start one controller on its settings."""
        controller = Controller(config)
        name = config.controller_d_leger_self_id
        await controller.start()
        self.controllers[name] = controller
        self.clients[name] = ControllerClient(controller.peers.own.address)

    async def stop(self, name: str) -> None:
        """Stop one controller."""
        await self.controllers.pop(name).stop()
        await self.clients.pop(name).close()

    async def leader(self) -> tuple[str, ControllerClient]:
        """Wait for a leader; return its name and a client."""
        found = await leader_of(list(self.controllers.values()))
        name = found.peers.own.name
        return name, self.clients[name]


async def with_master(client: ControllerClient) -> list[ScriptedBroker]:
    brokers = [ScriptedBroker(client, SET, f"127.0.0.1:1091{n}") for n in (1, 2)]
    for broker in brokers:
        await broker.join()
        await broker.beat()
    assert (await brokers[0].elect()).code == 0
    assert (await brokers[0].alter(1, 2)).code == 0
    return brokers


async def test_a_restart_keeps_the_state_and_deposes_no_master(tmp_path: Path) -> None:
    configs = controller_configs(tmp_path, 1)
    async with Group(configs) as group:
        _, client = await group.leader()
        await with_master(client)
        before = group.controllers["n0"].replicas.snapshot()
    async with Group(configs) as group:
        _, client = await group.leader()
        slave = ScriptedBroker(client, SET, "127.0.0.1:10912")
        slave.broker_id = 2
        answer = await slave.register()
        assert answer.ext_fields["masterBrokerId"] == "1"
        await slave.beat()
        # The master's heartbeat may still be on the way.
        assert (await slave.elect()).code == Code.CONTROLLER_MASTER_STILL_EXIST
        assert group.controllers["n0"].replicas.snapshot() == before


async def test_followers_refuse_all_but_heartbeats_and_metadata(tmp_path: Path) -> None:
    async with Group(controller_configs(tmp_path, 3)) as group:
        leader, client = await group.leader()
        brokers = await with_master(client)
        follower = next(name for name in group.clients if name != leader)
        asked = group.clients[follower]
        known = (await asked.ask(Request.CONTROLLER_GET_METADATA_INFO)).ext_fields
        assert known["controllerLeaderId"] == leader
        assert known["controllerLeaderAddress"] == client.addr
        assert known["isLeader"] == "false"
        assert known["peers"].count(";") == 3
        brokers[0].client = asked
        assert (await brokers[0].beat()).code == 0
        for answer in (
            await brokers[0].register(),
            await brokers[0].elect(),
            await asked.ask(Request.CONTROLLER_GET_REPLICA_INFO, brokerName=SET),
            await asked.ask(Request.CLEAN_BROKER_DATA, brokerName=SET),
        ):
            assert answer.code == Code.CONTROLLER_NOT_LEADER
            assert answer.remark == "The controller is not in leader state"


async def test_a_new_leader_knows_the_state_and_elects(tmp_path: Path) -> None:
    async with Group(controller_configs(tmp_path, 3)) as group, AsyncExitStack() as stack:
        old, client = await group.leader()
        brokers = await with_master(client)
        others = [name for name in group.clients if name != old]
        for name in others:  # brokers send heartbeats to every controller
            replicas = group.controllers[name].replicas
            await eventually(partial(replicas.get, SET), 90)
            master = ControllerClient(group.clients[name].addr)
            stack.push_async_callback(master.close)
            for broker, own in zip(brokers, (master, group.clients[name]), strict=True):
                broker.client = own
                await broker.beat()
            brokers[0].client = master
        await group.stop(old)
        new, client = await group.leader()
        assert new != old
        brokers[1].client = client
        fields, body = await brokers[1].info()
        assert (fields["masterBrokerId"], body["syncStateSet"]) == ("1", [1, 2])
        await stack.aclose()  # the master's connections close

        async def is_replaced() -> bool:
            return (await brokers[1].info())[0].get("masterBrokerId") == "2"

        await eventually(is_replaced, 90)


async def test_a_set_of_which_no_broker_lives_keeps_its_master(tmp_path: Path) -> None:
    async with Group(controller_configs(tmp_path, 1)) as group:
        name, client = await group.leader()
        (master, _) = await with_master(client)
        controller = group.controllers[name]
        await client.close()  # both brokers
        await eventually(lambda: not controller.varz()["connections"], 90)
        client = group.clients[name] = ControllerClient(client.addr)
        await group.stop(name)
    async with Group(group.configs) as again:
        _, master.client = await again.leader()
        await master.beat()
        fields, body = await master.info()
        assert (fields["masterBrokerId"], fields["masterEpoch"]) == ("1", "1")
        assert body["syncStateSet"] == [1, 2]
