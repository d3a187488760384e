"""`mqadmin checkAccess` explains the decisions of brokers with access control."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.remoting.bodies import ClusterAclConfig, PlainAccessConfig, encode_body
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin
from tests.support.access_checks import agree, secret_of
from tests.support.acl1_matrix import FILE
from tests.support.cluster import Cluster
from tests.support.scripted_peer import ScriptedPeer
from tests.support.secured_cluster import ROOT, secured_cluster

#: Options of createAcl for each user.
ENTRIES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "writer": (("Topic:orders*", "Pub", "Allow"), ("Topic:orders-eu", "All", "Deny")),
    "reader": (("Topic:orders", "Sub", "Allow"), ("Group:billing", "Sub", "Allow")),
    "idle": (),
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        mqadmin = signing(cluster)
        for name, entries in ENTRIES.items():
            user = ("-u", name, "-p", secret_of(name))
            mqadmin("createUser", "-b", cluster.broker_addr, *user)
            for resource, action, decision in entries:
                entry = ("-s", f"User:{name}", "-r", resource, "-a", action, "-d", decision)
                mqadmin("createAcl", "-b", cluster.broker_addr, *entry)
        yield cluster


def signing(cluster: Cluster) -> Mqadmin:
    return Mqadmin(cluster.namesrv_addr, (ROOT.access_key, ROOT.secret_key))


def test_users_are_explained_as_the_broker_decides(secured: Cluster) -> None:
    mqadmin, addr = signing(secured), secured.broker_addr
    allowed = {
        (account, topic, group)
        for account in (*ENTRIES, ROOT.access_key, "nobody")
        for topic in ("orders", "orders-eu", "%RETRY%billing")
        for group in ("", "billing")
        if agree(mqadmin.document, addr, account, topic, group)
    }
    assert {each for each in allowed if each[0] != ROOT.access_key} == {
        ("writer", "orders", ""),
        ("reader", "orders", "billing"),
        ("reader", "%RETRY%billing", ""),
        ("reader", "%RETRY%billing", "billing"),
    }
    assert (ROOT.access_key, "orders-eu", "billing") in allowed


def test_the_deciding_entry_is_printed(secured: Cluster) -> None:
    mqadmin = signing(secured)
    asked = ("checkAccess", "-c", "DefaultCluster", "-u", "writer", "-a", "Pub", "-i", "10.0.0.1")
    header, allowed = mqadmin.lines(*asked, "-t", "orders")
    assert header.split() == ["#Broker", "Addr", "#Decision", "#Resource", "#Rule"]
    assert allowed.split(maxsplit=3) == [
        *(secured.broker_addr, "allowed", "Topic:orders", "Allow Pub on Topic:orders*")
    ]
    _, refused, remark = mqadmin.lines(*asked, "-t", "orders-eu")
    assert refused.split(maxsplit=3)[3] == "Deny All on Topic:orders-eu"
    assert remark == (
        "code 16 NO_PERMISSION: User:writer has no permission to access Topic:orders-eu from "
        "10.0.0.1, the decision is deny."
    )


def test_a_change_is_explained_at_once(secured: Cluster) -> None:
    mqadmin, addr = signing(secured), secured.broker_addr
    assert not agree(mqadmin.document, addr, "late", "late", "")
    mqadmin("createUser", "-b", addr, "-u", "late", "-p", secret_of("late"))
    assert not agree(mqadmin.document, addr, "late", "late", "")
    mqadmin("createAcl", "-b", addr, "-s", "User:late", "-r", "*", "-a", "All", "-d", "Allow")
    assert agree(mqadmin.document, addr, "late", "late", "")
    mqadmin("updateUser", "-b", addr, "-u", "late", "-s", "disable")
    assert not agree(mqadmin.document, addr, "late", "late", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-a", "Get", "-i", "10.0.0.1"), "'Get' is neither Pub nor Sub"),
        (("-a", "Sub", "-i", "10.0.0.1"), "Give -g/--groupName with -a Sub"),
        (("-a", "Pub", "-g", "g", "-i", "10.0.0.1"), "only with -a Sub"),
        (("-a", "Pub", "-i", "10.0.0.0/8"), "'10.0.0.0/8' is no IP address"),
        (("-a", "Pub", "-i", "::1", "--aclFile", "/nowhere.yml"), "/nowhere.yml cannot be read"),
    ],
)
def test_a_wrong_question_is_refused(options: tuple[str, ...], message: str) -> None:
    """Before the first request: nothing listens on the address."""
    asked = ("checkAccess", "-b", "127.0.0.1:1", "-u", "writer", "-t", "orders", *options)
    assert message in " ".join(Mqadmin("127.0.0.1:1")(*asked, code=2).stderr.split())


def test_accounts_are_explained_as_the_broker_decides(tmp_path: Path) -> None:
    """From the broker's answer to an administrator, and from a given file."""
    file = tmp_path / "home/conf/plain_acl.yml"
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    with Cluster(tmp_path, acl_enable=True, rocketmq_home=tmp_path / "home") as cluster:
        mqadmin = Mqadmin(cluster.namesrv_addr, ("admin-1", "secret-of-admin-1"))
        addr, given = cluster.broker_addr, ("--aclFile", str(file))
        for options in ((), given):
            allowed = {
                (account, topic, group)
                for account in ("nothing", "defaults", "listed-1", "nobody-1")
                for topic, group in (("P", ""), ("D", ""), ("S", "G"), ("S", "GD"))
                if agree(mqadmin.document, addr, account, topic, group, *options)
            }
            assert allowed == {
                ("defaults", "P", ""),
                ("defaults", "S", "G"),
                ("defaults", "S", "GD"),
                ("listed-1", "P", ""),
                ("listed-1", "S", "G"),
            }
        asked = ("checkAccess", "-b", addr, "-u", "nothing", "-t", "P", "-a", "Pub", "-i", "::1")
        ordinary = Mqadmin(cluster.namesrv_addr, ("nothing", secret_of("nothing")))
        failed = ordinary(*asked, code=1).stderr
        assert "admin" in failed
        file.write_text("accounts: [{accessKey: short}]")
        assert "accessKey needs at least 7" in mqadmin(*asked, *given, code=2).stderr


async def test_accounts_of_an_older_java_broker_are_explained() -> None:
    """Brokers before 4.9.8 return accounts, here with absent members and a name like a number."""
    accounts = [
        PlainAccessConfig(
            access_key="1234567",
            secret_key="secret: of 'it'",
            default_topic_perm="DENY",
            topic_perms=["orders=PUB|SUB"],
        )
    ]
    config = ClusterAclConfig(global_white_addrs=["10.9.*.*"], plain_access_configs=accounts)
    async with ScriptedPeer() as broker:
        settings = b"aclEnable=true\nbrokerClusterName=C\n"
        broker.on(Code.GET_BROKER_CONFIG, lambda _: RemotingCommand.response(body=settings))
        answer = encode_body(config)
        broker.on(
            Code.GET_BROKER_CLUSTER_ACL_CONFIG, lambda _: RemotingCommand.response(body=answer)
        )
        mqadmin = Mqadmin("127.0.0.1:1")

        async def explained(address: str, topic: str) -> tuple[bool, str]:
            asked = ("-b", broker.addr, "-u", "1234567", "-t", topic, "-a", "Pub", "-i", address)
            document = await asyncio.to_thread(mqadmin.document, "checkAccess", *asked)
            (only,) = document["brokers"]
            return only["allowed"], only["rules"][0]["rule"]

        assert await explained("10.1.0.1", "orders") == (True, "topicPerms: orders=PUB|SUB")
        assert await explained("10.1.0.1", "other") == (False, "defaultTopicPerm: DENY")
        assert await explained("10.9.0.1", "other") == (
            True,
            "globalWhiteRemoteAddresses: 10.9.*.*",
        )


async def test_a_broker_without_access_control_admits_everybody() -> None:
    async with ScriptedPeer() as broker:
        settings = b"aclEnable=false\nbrokerName=a\n"
        broker.on(Code.GET_BROKER_CONFIG, lambda _: RemotingCommand.response(body=settings))
        asked = ("-b", broker.addr, "-u", "u", "-t", "t", "-a", "Pub", "-i", "::1")
        document = await asyncio.to_thread(Mqadmin("127.0.0.1:1").document, "checkAccess", *asked)
        (only,) = document["brokers"]
        assert only["allowed"]
        assert "aclEnable, authenticationEnabled" in only["rules"][0]["rule"]
