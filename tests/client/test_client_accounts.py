"""The inventory of clients names the account that signed each client's heartbeat."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core_broker.client import AclRpcHook
from core_broker.client.admin import AdminClient
from core_broker.remoting.bodies import HeartbeatData, ProducerData, UserInfo, encode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.acl1_matrix import FILE
from tests.support.cluster import Cluster
from tests.support.secured_cluster import ROOT, secured_cluster

ROOT_HOOK = AclRpcHook(ROOT.access_key, ROOT.secret_key)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
async def client() -> AsyncIterator[RemotingClient]:
    client = RemotingClient(name="maker")
    yield client
    await client.close()


async def beat(client: RemotingClient, addr: str, hook: AclRpcHook | None, group: str) -> int:
    """Send a heartbeat of the producer `maker@1`; returns the code of the answer."""
    producers = [ProducerData(group_name=group)]
    body = encode_body(HeartbeatData(client_id="maker@1", producer_data_set=producers))
    request = RemotingCommand.request(RequestCode.HEART_BEAT, body=body)
    if hook is not None:
        hook.before_request(addr, request)
    return (await client.invoke(addr, request)).code


async def accounts(cluster: Cluster, hook: AclRpcHook | None) -> list[str | None]:
    """The accounts of the connections with the id `maker@1`."""
    hooks = [] if hook is None else [hook]
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=hooks) as admin:
        clients = (await admin.all_clients(cluster.broker_addr)).clients
    return [client.account for client in clients if client.client_id == "maker@1"]


async def test_the_user_of_a_heartbeat(secured: Cluster, client: RemotingClient) -> None:
    """Repeated heartbeats take the fast path and keep the user; another user replaces it."""
    addr = secured.broker_addr
    hooks = {name: AclRpcHook(name, f"secret-of-{name}") for name in ("alice", "bob")}
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ROOT_HOOK]) as root:
        for name in hooks:
            user = UserInfo(username=name, password=f"secret-of-{name}")
            await root.create_user(addr, user)
    for _ in range(4):
        assert await beat(client, addr, hooks["alice"], "PG") == ResponseCode.SUCCESS
        assert await accounts(secured, ROOT_HOOK) == ["alice"]
    assert await beat(client, addr, hooks["bob"], "PG") == ResponseCode.SUCCESS
    assert await accounts(secured, ROOT_HOOK) == ["bob"]
    assert await beat(client, addr, None, "PG") == ResponseCode.NO_PERMISSION
    assert (
        await beat(client, addr, AclRpcHook("alice", "wrong"), "PG") == ResponseCode.NO_PERMISSION
    )
    assert await accounts(secured, ROOT_HOOK) == ["bob"]


async def test_no_account_without_access_control(tmp_path: Path, client: RemotingClient) -> None:
    """A name in a request that nobody verifies is no account."""
    with Cluster(tmp_path) as cluster:
        hook = AclRpcHook("alice", "secret-of-alice")
        assert await beat(client, cluster.broker_addr, hook, "PG") == ResponseCode.SUCCESS
        assert await accounts(cluster, None) == [None]


async def test_the_access_key_of_a_heartbeat(tmp_path: Path, client: RemotingClient) -> None:
    """With ACL 1.0; a client of the global white list names nobody for certain."""
    conf = tmp_path / "home/conf"
    conf.mkdir(parents=True)
    file = conf / "plain_acl.yml"
    file.write_text(FILE)
    listed, admin = (AclRpcHook(name, f"secret-of-{name}") for name in ("listed-1", "admin-1"))
    with Cluster(tmp_path, acl_enable=True, rocketmq_home=tmp_path / "home") as cluster:
        assert await beat(client, cluster.broker_addr, listed, "PG") == ResponseCode.SUCCESS
        assert await accounts(cluster, admin) == ["listed-1"]
    file.write_text(FILE.replace("127.0.0.9", "127.0.0.*"))
    with Cluster(tmp_path, acl_enable=True, rocketmq_home=tmp_path / "home") as cluster:
        assert await beat(client, cluster.broker_addr, listed, "PG") == ResponseCode.SUCCESS
        assert await accounts(cluster, admin) == [None]
