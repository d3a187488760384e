"""Signing clients of Apache RocketMQ at name server and broker of Gantry with access control."""

import asyncio
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core_broker.client import AclRpcHook, AdminClient, TopicConfig
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from tests.compat import installing
from tests.compat.conftest import COMMANDS, require
from tests.compat.foreign import ForeignClient
from tests.support.cluster import Cluster

ROOT = AclRpcHook("root", "secret-of-root")
CREDENTIALS = {"account": "orders", "secret": "secret-of-orders"}
PERMITTED = {"Topic:Mine": "Pub,Sub", "Group:CG-access": "Sub"}
MESSAGES = 30

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 300)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as started:
        yield started


def secured(stack: ExitStack, folder: Path) -> Cluster:
    """Servers with a super user, an account and two topics, one of them permitted."""
    access = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": "root", "password": "secret-of-root"}),
        "inner_client_authentication_credentials": json.dumps(
            {"accessKey": "inner", "secretKey": "secret-of-inner"}
        ),
    }
    cluster = stack.enter_context(Cluster(folder, both=access))
    asyncio.run(prepare(cluster))
    return cluster


async def prepare(cluster: Cluster) -> None:
    addr = cluster.broker_addr
    entries = [
        PolicyEntryInfo(resource=resource, actions=actions.split(","), decision="Allow")
        for resource, actions in PERMITTED.items()
    ]
    acl = AclInfo(subject="User:orders", policies=[PolicyInfo(entries=entries)])
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ROOT]) as root:
        for topic in ("Mine", "Theirs"):
            await root.create_topic(addr, TopicConfig(topic_name=topic))
        for server in (addr, cluster.namesrv_addr):
            user = UserInfo(username="orders", password="secret-of-orders")
            await root.create_user(server, user)
            await root.create_acl(server, acl)


async def stored(cluster: Cluster, topic: str) -> int:
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ROOT]) as root:
        stats = await root.topic_stats(cluster.broker_addr, topic)
    return sum(offsets.max_offset for offsets in stats.values())


def client(stack: ExitStack, kind: str, folder: Path) -> ForeignClient:
    home = folder / f"{kind}-{len(list(folder.iterdir()))}"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home)}
    started = ForeignClient(COMMANDS[kind](environment), environment, home / "client.log")
    stack.callback(started.kill)
    return started


@pytest.mark.parametrize("kind", ["java", "java5", "go", "cpp"])
def test_a_signing_client_does_what_its_account_may_do(
    kind: str, stack: ExitStack, tmp_path: Path
) -> None:
    require(kind)
    cluster = secured(stack, tmp_path)
    producer, consumer = client(stack, kind, tmp_path), client(stack, kind, tmp_path)
    common = {"namesrv": cluster.namesrv_addr, **CREDENTIALS}
    producer.command("produce", group="PG-access", **common)
    producer.wait_for("ready")
    bodies = {f"message {number}" for number in range(MESSAGES)}
    producer.send("Mine", [{"body": body} for body in sorted(bodies)])
    consumer.command("consume", group="CG-access", topic="Mine", expression="*", **common)
    consumer.wait_for("ready")
    consumer.wait_until(
        lambda: bodies <= {each["body"] for each in consumer.messages}, "all bodies", 60
    )
    url = f"http://127.0.0.1:{cluster.http_ports['broker']}/varz"
    with urllib.request.urlopen(url, timeout=10) as answer:
        varz = json.load(answer)
    # Go and C++ clients send with the old code 10, which only the slow path takes.
    if kind.startswith("java") and varz["kernel"]["is_compiled"]:
        assert varz["kernel"]["messages_sent"] > 0
    assert varz["access_control"]["refused"] == {}
    assert "refused request code" not in cluster.namesrv.printed
    with pytest.raises(AssertionError, match="while waiting for"):
        producer.send("Theirs", [{"body": "refused"}])
    assert asyncio.run(stored(cluster, "Theirs")) == 0
    assert asyncio.run(stored(cluster, "Mine")) >= MESSAGES
