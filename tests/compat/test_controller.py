"""Java 5.3.3 brokers and mqadmin with Gantry's controller: join, election, failover, cleaning."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin
from tests.compat import installing
from tests.compat.broker_state import eventually
from tests.compat.conftest import Maker
from tests.compat.java_broker import JavaBroker, java_replica
from tests.compat.test_java_tools import MqAdmin
from tests.support.cluster import Program, free_broker_port

VERSION = installing.JAVA5_VERSION
SECONDS_MAX = 120
#: Also test with a controller in the name server, which takes another one and a half minutes.
EVERY = os.environ.get("CONTROLLER_CHECKS") == "all"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 5 * SECONDS_MAX)

StartClients = Callable[[str, str], Maker]


class Group:
    """A name server, a controller, and two Java brokers of one name.

    The controller is a program of its own, or runs in the name server.
    """

    def __init__(self, folder: Path, undo: ExitStack, *, is_embedded: bool) -> None:
        self.folder = folder
        self.controller = f"127.0.0.1:{free_broker_port()}"
        own = {"bind_address": "127.0.0.1", "http_port": 0}
        routes = {
            "listen_port": free_broker_port(),
            "kv_config_path": folder / "kv.json",
            "config_store_path": folder / "n.properties",
            "enable_controller_in_namesrv": is_embedded,
        }
        self.namesrv = f"127.0.0.1:{routes['listen_port']}"
        self.settings = {
            **own,
            "controller_d_leger_peers": f"n0-{self.controller}",
            "controller_store_path": folder / "raft",
            "scan_not_active_broker_interval": 1_000,
            "scan_inactive_master_interval": 1_000,
        }
        namesrv = Program("namesrv", folder)
        undo.callback(namesrv.kill)
        if is_embedded:
            self.program, self.settings = namesrv, self.settings | routes
        else:
            namesrv.start(own | routes)
            self.program = Program("core_broker.controller", folder)
            undo.callback(self.program.kill)
        self.program.start(self.settings)
        self.brokers = [self._broker(name) for name in ("first", "second")]
        for broker in self.brokers:
            undo.callback(broker.kill)

    def _broker(self, name: str) -> JavaBroker:
        return java_replica(self.folder / name, self.namesrv, [self.controller])

    def ask(self, code: RequestCode, body: object = None, **fields: str) -> RemotingCommand:
        """Return the controller's answer."""

        async def exchange() -> RemotingCommand:
            client = RemotingClient(name="test")
            data = b"" if body is None else json.dumps(body).encode()
            try:
                request = RemotingCommand.request(code, fields, data)
                return await client.invoke(self.controller, request, SECONDS_MAX * 1000)
            finally:
                await client.close()

        return asyncio.run(exchange())

    def replicas(self) -> dict[str, object]:
        """Return master id, epoch and the ids in sync; empty without a registered broker."""
        answer = self.ask(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, ["broker-a"])
        table = json.loads(answer.body)["replicasInfoTable"]
        if "broker-a" not in table:
            return {}
        found = table["broker-a"]
        return {
            "master": found.get("masterAddress"),
            "epoch": found["masterEpoch"],
            "in_sync": sorted(one["brokerAddress"] for one in found["inSyncReplicas"]),
        }


def _same_as_ours(mqadmin: MqAdmin, namesrv: str, at: tuple[str, str]) -> None:
    """Compare Java's output with ours for the commands that change nothing."""
    ours = Mqadmin(namesrv)
    commands = (
        ("getControllerMetaData", *at),
        ("getSyncStateSet", *at, "-b", "broker-a"),
        ("getSyncStateSet", *at, "-c", "DefaultCluster"),
    )
    for command in commands:
        assert ours(*command).stdout.rstrip() == mqadmin(*command).rstrip(), command
    # Java prints brokers and settings in the order of hash tables.
    for command in (("getBrokerEpoch", "-b", "broker-a"), ("getControllerConfig", *at)):
        java_lines = mqadmin(*command).splitlines()
        assert sorted(ours.lines(*command)) == sorted(java_lines), command


@pytest.fixture(params=["program", "in_namesrv"] if EVERY else ["program"])
def group(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> Iterator[Group]:
    record_property("client", f"java-broker-{VERSION}")
    try:
        installing.java_broker_classpath(VERSION)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    with ExitStack() as undo:
        yield Group(tmp_path, undo, is_embedded=request.param == "in_namesrv")


def test_java_brokers_and_tools_under_our_controller(
    group: Group, start_clients: StartClients
) -> None:
    first, second = group.brokers
    first.start()
    eventually(
        lambda: group.replicas() == {"master": first.addr, "epoch": 1, "in_sync": [first.addr]},
        "the first broker is master",
        SECONDS_MAX,
    )
    second.start()
    both = sorted((first.addr, second.addr))
    eventually(lambda: group.replicas().get("in_sync") == both, "both are in sync", SECONDS_MAX)

    clients = start_clients("java5", group.namesrv)
    mqadmin = MqAdmin(clients.admin(), group.namesrv)
    at = ("-a", group.controller)
    metadata = mqadmin("getControllerMetaData", *at)
    assert re.search(rf"#ControllerLeaderAddress\s+{re.escape(group.controller)}", metadata)
    assert re.search(rf"#Peer:\s+n0:{re.escape(group.controller)}", metadata)
    printed = mqadmin("getSyncStateSet", *at, "-b", "broker-a")
    assert re.search(rf"#MasterAddr\s+{re.escape(first.addr)}", printed), printed
    assert printed.count("InSyncReplica:") == 2, printed
    mqadmin("updateControllerConfig", *at, "-k", "electMasterMaxRetryCount", "-v", "5")
    settings = mqadmin("getControllerConfig", *at)
    assert re.search(r"electMasterMaxRetryCount\s*=\s*5\b", settings), settings

    _same_as_ours(mqadmin, group.namesrv, at)

    elected = mqadmin("electMaster", *at, "-b", "2", "-bn", "broker-a", "-c", "DefaultCluster")
    assert re.search(rf"#BrokerMasterAddr\s+{re.escape(second.addr)}", elected), elected
    assert re.search(r"#MasterEpoch\s+2\b", elected), elected
    eventually(lambda: group.replicas().get("in_sync") == both, "in sync again", SECONDS_MAX)

    group.program.kill()
    group.program.start(group.settings)
    second.kill()
    eventually(
        lambda: group.replicas() == {"master": first.addr, "epoch": 3, "in_sync": [first.addr]},
        "the first broker is master again",
        SECONDS_MAX,
    )
    cleaned = mqadmin(
        *("cleanBrokerMetadata", *at, "-bn", "broker-a", "-b", "2", "-c", "DefaultCluster")
    )
    assert "success" in cleaned, cleaned
    assert "NotInSyncReplica" not in mqadmin("getSyncStateSet", *at, "-b", "broker-a")
