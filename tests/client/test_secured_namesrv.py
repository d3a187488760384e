"""A name server with users in a process of its own, with a broker, clients and mqadmin."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import AclRpcHook, Message, Producer
from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, TopicConfig, UserInfo
from tests.support.cluster import SMALL_STORE, Program, free_broker_port
from tests.support.eventually import eventually

ROOT = AclRpcHook("root", "secret-of-root")
ALICE = AclRpcHook("alice", "secret-of-alice")
INIT = json.dumps({"username": "root", "password": "secret-of-root"})
INNER = json.dumps({"accessKey": "inner", "secretKey": "secret-of-inner"})
WRONG = json.dumps({"accessKey": "inner", "secretKey": "guessed"})


class SecuredCluster:
    """A name server with users, and brokers with and without credentials of the name server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.namesrv = Program("namesrv", folder)
        self.broker = Program("core_broker", folder)
        self.namesrv_settings: dict[str, Any] = {
            "listen_port": free_broker_port(),
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": folder / "kvConfig.json",
            "config_store_path": folder / "namesrv.properties",
            "authentication_enabled": True,
            "authorization_enabled": True,
            "init_authentication_user": INIT,
            "inner_client_authentication_credentials": INNER,
        }
        self.namesrv_addr = f"127.0.0.1:{self.namesrv_settings['listen_port']}"
        self._broker_settings: dict[str, Any] = {
            "broker_name": "broker-a",
            "broker_ip1": "127.0.0.1",
            "bind_address": "127.0.0.1",
            "listen_port": free_broker_port(),
            "http_port": 0,
            "namesrv_addr": self.namesrv_addr,
            "store_path_root_dir": folder / "store",
            **SMALL_STORE,
            "wait_time_mills_in_send_queue": 20_000,
        }
        self.broker_addr = f"127.0.0.1:{self._broker_settings['listen_port']}"

    def start_broker(self, credentials: str) -> None:
        """Start the broker again, with innerClientAuthenticationCredentials."""
        self.broker.stop()
        settings = {"inner_client_authentication_credentials": credentials} if credentials else {}
        self.broker.start(self._broker_settings | settings)

    def readiness(self) -> str:
        """The broker's /readyz, also when the broker is not ready."""
        port = self.broker.port("http: /readyz /metrics /varz")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SecuredCluster]:
    secured = SecuredCluster(tmp_path)
    try:
        secured.namesrv.start(secured.namesrv_settings)
        yield secured
    finally:
        secured.broker.kill()
        secured.namesrv.kill()


async def brokers(admin: AdminClient) -> list[str]:
    return sorted((await admin.cluster_info()).broker_addr_table)


async def wait_for_broker(admin: AdminClient) -> None:
    async def is_registered() -> bool:
        with suppress(TransportError):  # the name server may have been killed before
            return await brokers(admin) == ["broker-a"]
        return False

    await eventually(is_registered, 60)


@pytest.mark.parametrize("credentials", ["", WRONG])
async def test_a_broker_without_the_credentials_is_refused_and_says_so(
    cluster: SecuredCluster, credentials: str
) -> None:
    cluster.start_broker(credentials)

    await eventually(lambda: "innerClientAuthenticationCredentials" in cluster.readiness(), 60)
    assert "innerClientAuthenticationCredentials" in cluster.broker.printed
    assert "refused request code" in cluster.namesrv.printed
    assert "guessed" not in cluster.namesrv.printed + cluster.broker.printed
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ROOT]) as root:
        assert await brokers(root) == []
        cluster.start_broker(INNER)
        await wait_for_broker(root)


async def test_a_signed_producer_sends_and_others_find_no_route(cluster: SecuredCluster) -> None:
    cluster.start_broker(INNER)
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ROOT]) as root:
        await wait_for_broker(root)
        for topic in ("Mine", "Theirs"):
            await root.create_topic(cluster.broker_addr, TopicConfig(topic_name=topic))
        user = UserInfo(username="alice", password="secret-of-alice")
        await root.create_user(cluster.namesrv_addr, user)
        entry = PolicyEntryInfo(resource="Topic:Mine", actions=["Pub"], decision="Allow")
        acl = AclInfo(subject="User:alice", policies=[PolicyInfo(entries=[entry])])
        await root.create_acl(cluster.namesrv_addr, acl)

        async with Producer("PG", cluster.namesrv_addr, rpc_hooks=[ALICE]) as producer:
            await producer.send(Message("Mine", b"allowed"))
            with pytest.raises(GantryError, match="no permission to access Topic:Theirs"):
                await producer.send(Message("Theirs", b"refused"))
        async with Producer("PG", cluster.namesrv_addr) as unsigned:
            with pytest.raises(GantryError, match="username cannot be null"):
                await unsigned.send(Message("Mine", b"refused"))
        stored = {
            topic: sum(
                offsets.max_offset
                for offsets in (await root.topic_stats(cluster.broker_addr, topic)).values()
            )
            for topic in ("Mine", "Theirs")
        }
        assert stored == {"Mine": 1, "Theirs": 0}

        # A power cut of the name server: the users are on disk since their answers.
        cluster.namesrv.kill()
        changed = {"init_authentication_user": INIT.replace("secret-of-root", "another")}
        cluster.namesrv.start(cluster.namesrv_settings | changed)
        await wait_for_broker(root)
        names = [user.username for user in await root.users(cluster.namesrv_addr)]
        assert names == ["alice", "inner", "root"]
        async with Producer("PG", cluster.namesrv_addr, rpc_hooks=[ALICE]) as producer:
            await producer.send(Message("Mine", b"allowed"))
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ALICE]) as alice:
        with pytest.raises(RequestRefused, match=r"NO_PERMISSION.*Cluster:DefaultCluster"):
            await alice.cluster_info()
