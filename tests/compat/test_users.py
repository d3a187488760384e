"""Users and access control lists (ACL 2.0) between Gantry and RocketMQ 5.3.3, in both directions.

The same commands run with Java's mqadmin and with Gantry's, against a broker of each: the four
outputs of a command are equal.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner

from core_broker.mqadmin.cli import cli
from tests.compat import installing
from tests.compat.conftest import COMMANDS, require
from tests.compat.foreign import ForeignClient
from tests.compat.java_broker import JavaBroker
from tests.compat.test_java_tools import MqAdmin
from tests.support.cluster import Cluster

AUTH = "org.apache.rocketmq.auth"
ROOT_PASSWORD = "secret-of-root"
#: Settings of both brokers, and of the name server, where Java's broker registers, too.
ACCESS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": "root", "password": ROOT_PASSWORD}),
    "inner_client_authentication_credentials": json.dumps(
        {"accessKey": "inner", "secretKey": "secret-of-inner"}
    ),
}
#: Settings of both brokers; RocketMQ needs the class names, Gantry accepts them.
SETTINGS: dict[str, Any] = ACCESS | {
    "authentication_metadata_provider": (
        f"{AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorization_metadata_provider": (
        f"{AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "migrate_auth_from_v1_enabled": True,
}
#: Options after the broker's address, of commands that succeed and of commands that fail.
STEPS: tuple[tuple[str, ...], ...] = (
    ("createUser", "-u", "alice", "-p", "secret-of-alice"),
    ("createUser", "-u", "bob", "-p", "secret-of-bob", "-t", "Super"),
    ("createUser", "-u", "alice", "-p", "another"),
    ("updateUser", "-u", "alice", "-s", "disable"),
    ("getUser", "-u", "alice"),
    ("updateUser", "-u", "alice", "-s", "enable"),
    ("updateUser", "-u", "bob", "-t", "Normal"),
    ("updateUser", "-u", "nobody", "-p", "x"),
    ("listUser",),
    ("listUser", "-f", "bo"),
    ("getUser", "-u", "nobody"),
    ("createAcl", "-s", "User:alice", "-r", "Topic:t1,Group:g*", "-a", "Pub,Sub", "-d", "Allow"),
    *(
        ("createAcl", "-s", "User:alice", "-r", "*", "-a", "All", "-d", "Deny", "-i", sources)
        for sources in ("10.0.0.0/8,::1", "nonsense")
    ),
    ("createAcl", "-s", "User:nobody", "-r", "Topic:t1", "-a", "Pub", "-d", "Allow"),
    ("createAcl", "-s", "User:alice", "-r", "Topic:t1", "-a", "Any", "-d", "Allow"),
    ("getAcl", "-s", "User:alice"),
    ("updateAcl", "-s", "User:alice", "-r", "Topic:t1", "-a", "Pub", "-d", "Deny"),
    ("updateAcl", "-s", "User:bob", "-r", "Cluster:*", "-a", "Get", "-d", "Allow"),
    ("listAcl",),
    ("listAcl", "-s", "bob"),
    ("listAcl", "-r", "Group:"),
    ("deleteAcl", "-s", "User:alice", "-r", "Topic:t1"),
    ("deleteAcl", "-s", "User:alice", "-r", "Topic:t2"),
    ("getAcl", "-s", "User:alice"),
    ("deleteAcl", "-s", "User:alice"),
    ("getAcl", "-s", "User:alice"),
    ("getAcl", "-s", "User:nobody"),
    ("deleteUser", "-u", "bob"),
    ("deleteUser", "-u", "nobody"),
    ("listUser",),
    ("listAcl",),
    ("deleteUser", "-u", "alice"),
)
#: Code and remark of a refused request, in the output of either tool.
REFUSED = re.compile(r"(?:CODE: |NO_PERMISSION \()(\d+)(?:  DESC: |\): )(.*)")
#: What Gantry's tool adds to the remark.
EXPLAINED = " The permission of the broker, topic or group forbids it."

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)

#: Accounts of ACL 1.0, with the accounts of RocketMQ's example file.
ACCOUNTS = """
globalWhiteRemoteAddresses: [10.10.103.*, 192.168.0.*]
accounts:
- {accessKey: RocketMQ, secretKey: 12345678, admin: false, defaultTopicPerm: DENY,
   defaultGroupPerm: SUB, topicPerms: [topicA=DENY, topicB=PUB|SUB, topicC=SUB],
   groupPerms: [groupA=DENY, groupB=PUB|SUB, groupC=SUB]}
- {accessKey: rocketmq2, secretKey: 12345678, whiteRemoteAddress: 192.168.1.*, admin: true}
- {accessKey: odd-account, secretKey: odd-secret, defaultTopicPerm: PUB, defaultGroupPerm: DENY,
   topicPerms: ["%DLQ%g=SUB", t2=PUB], groupPerms: [g1=PUB]}
"""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def gantry(stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    folder = tmp_path_factory.mktemp("gantry")
    (folder / "conf").mkdir()
    (folder / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    both = ACCESS | {"user_password_readable": True}
    return stack.enter_context(
        Cluster(folder, both=both, rocketmq_home=str(folder), **(SETTINGS | both))
    )


@pytest.fixture(scope="module")
def java_broker(
    stack: ExitStack, gantry: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> JavaBroker:
    """A broker of RocketMQ 5.3.3 at Gantry's name server."""
    folder = tmp_path_factory.mktemp("java")
    settings = SETTINGS | {"broker_cluster_name": "JavaCluster", "broker_name": "broker-java"}
    try:
        broker = JavaBroker(
            installing.JAVA5_VERSION, folder, folder / "store", gantry.namesrv_addr, **settings
        )
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    (broker.home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    stack.callback(broker.kill)
    broker.start()
    return broker


@pytest.fixture(scope="module")
def java_tool(
    stack: ExitStack, gantry: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> MqAdmin:
    """Java's mqadmin 5.3.3, which signs as root."""
    require("java5")
    home = tmp_path_factory.mktemp("tools")
    environment = {**os.environ, "HOME": str(home)}
    command = COMMANDS["java5"](environment)
    (home / "conf" / "tools.yml").write_text(f"accessKey: root\nsecretKey: {ROOT_PASSWORD}\n")
    client = ForeignClient(command, environment, home / "client.log")
    stack.callback(client.kill)
    return MqAdmin(client, gantry.namesrv_addr)


def java_run(tool: MqAdmin) -> Run:
    return lambda *arguments: tool(*arguments, may_fail=True)


def gantry_run(namesrv_addr: str, account: str = "root", secret: str = ROOT_PASSWORD) -> Run:
    """Run Gantry's mqadmin with the keys of an account."""
    environment = {"MQADMIN_ACCESS_KEY": account, "MQADMIN_SECRET_KEY": secret}

    def run(*arguments: str) -> str:
        shown = ["--showPassword"] if arguments[0] in ("getUser", "listUser") else []
        result = CliRunner().invoke(
            cli, [*arguments, *shown, "-n", namesrv_addr], prog_name="mqadmin", env=environment
        )
        return result.stdout + result.stderr

    return run


def essence(printed: str, addr: str) -> list[str]:
    """The lines of an output without the broker's address; code and remark of a refusal."""
    refused = REFUSED.search(printed)
    if refused is not None:
        return [f"{refused[1]} {refused[2].removesuffix(EXPLAINED).rstrip('.')}"]
    return [line.rstrip() for line in printed.replace(addr, "ADDR").splitlines() if line.strip()]


def outputs(run: Run, addr: str) -> list[tuple[tuple[str, ...], list[str]]]:
    return [(step, essence(run(step[0], "-b", addr, *step[1:]), addr)) for step in STEPS]


def test_commands_have_equal_outputs(
    gantry: Cluster, java_broker: JavaBroker, java_tool: MqAdmin
) -> None:
    java, own = java_run(java_tool), gantry_run(gantry.namesrv_addr)
    expected = outputs(java, java_broker.addr)
    assert dict(expected)["getAcl", "-s", "User:nobody"] == ["16 The subject is not exist"]
    assert outputs(java, gantry.broker_addr) == expected
    assert outputs(own, gantry.broker_addr) == expected
    assert outputs(own, java_broker.addr) == expected
    # Lists have the migrated accounts, which only brokers have.
    assert not_lists(outputs(java, gantry.namesrv_addr)) == not_lists(expected)


def not_lists(steps: list[tuple[tuple[str, ...], list[str]]]) -> list[object]:
    return [step for step in steps if not step[0][0].startswith("list")]


@pytest.mark.parametrize("tool", ["java", "gantry"])
def test_users_and_lists_are_copied_between_brokers(
    tool: str, gantry: Cluster, java_broker: JavaBroker, java_tool: MqAdmin
) -> None:
    run = java_run(java_tool) if tool == "java" else gantry_run(gantry.namesrv_addr)
    addrs = (java_broker.addr, gantry.broker_addr)
    for begin, end, name in ((*addrs, "from-java"), (*addrs[::-1], "from-gantry")):
        user, subject = f"{name}-{tool}", f"User:{name}-{tool}"
        run("createUser", "-b", begin, "-u", user, "-p", "secret-of-copied")
        entry = ("-r", "Topic:t*", "-a", "Pub", "-d", "Allow", "-i", "10.0.0.0/8")
        run("createAcl", "-b", begin, "-s", subject, *entry)
        copied = run("copyUser", "-f", begin, "-t", end, "-u", user)
        assert f"copy user of {user} from {begin} to {end} success." in copied
        copied = run("copyAcl", "-f", begin, "-t", end, "-s", subject)
        assert f"copy acl of {subject} from {begin} to {end} success." in copied
        for command in (("getUser", "-u", user), ("getAcl", "-s", subject)):
            shown = [run(command[0], "-b", addr, *command[1:]) for addr in (begin, end)]
            assert user in shown[0]
            assert shown[0] == shown[1]
        for addr in addrs:
            run("deleteUser", "-b", addr, "-u", user)


def test_a_command_for_the_cluster(gantry: Cluster, java_tool: MqAdmin) -> None:
    cluster = ("-c", "DefaultCluster")
    printed = java_tool("createUser", *cluster, "-u", "clustered", "-p", "secret-of-clustered")
    assert f"create user to {gantry.broker_addr} success." in printed
    assert "clustered" in java_tool("listUser", *cluster, "-f", "clustered")
    java_tool("deleteUser", *cluster, "-u", "clustered")


def test_the_name_server_has_users_of_its_own(gantry: Cluster, java_tool: MqAdmin) -> None:
    user, namesrv = ("-u", "routed"), ("-b", gantry.namesrv_addr)
    printed = java_tool("createUser", "-b", gantry.broker_addr, *user, "-p", "secret-of-routed")
    assert f"create user to {gantry.broker_addr} success." in printed
    assert "routed" not in java_tool("listUser", *namesrv)
    entry = ("-r", "Topic:t*", "-a", "Pub", "-d", "Allow")
    java_tool("createAcl", "-b", gantry.broker_addr, "-s", "User:routed", *entry)
    addrs = ("-f", gantry.broker_addr, "-t", gantry.namesrv_addr)
    java_tool("copyUser", *addrs, *user)
    java_tool("copyAcl", *addrs, "-s", "User:routed")
    assert "Topic:t*" in java_tool("getAcl", *namesrv, "-s", "User:routed")
    assert gantry.broker_addr in java_tool("clusterList")
    for addr in (gantry.broker_addr, gantry.namesrv_addr):
        java_tool("deleteUser", "-b", addr, *user)
    assert "routed" not in java_tool("listUser", *namesrv)


def test_accounts_of_acl_1_become_equal_users(gantry: Cluster, java_broker: JavaBroker) -> None:
    run = gantry_run(gantry.namesrv_addr)
    for name in ("RocketMQ", "rocketmq2", "odd-account"):
        for command in (("getUser", "-u", name), ("getAcl", "-s", f"User:{name}")):
            shown = [
                run(command[0], "-b", addr, *command[1:])
                for addr in (gantry.broker_addr, java_broker.addr)
            ]
            assert shown[0] == shown[1]
            assert name in shown[0] or command == ("getAcl", "-s", "User:rocketmq2")
