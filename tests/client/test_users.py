"""A broker with users and access control lists, driven by clients and mqadmin."""

import json
from collections.abc import Iterator

import pytest

from core_broker.client import AclRpcHook, Message, Producer
from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.ids import parse_offset_msg_id
from core_broker.remoting.bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    SubscriptionGroupConfig,
    TopicConfig,
    UserInfo,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader
from tests.support.cluster import Cluster

ROOT = AclRpcHook("root", "secret-of-root")
ALICE = AclRpcHook("alice", "secret-of-alice")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    first = json.dumps({"username": "root", "password": "secret-of-root"})
    with Cluster(
        tmp_path_factory.mktemp("secured"),
        authentication_enabled=True,
        authorization_enabled=True,
        init_authentication_user=first,
    ) as cluster:
        yield cluster


def allow(*resources: str, actions: str, user: str = "alice") -> AclInfo:
    entries = [
        PolicyEntryInfo(resource=resource, actions=actions.split(","), decision="Allow")
        for resource in resources
    ]
    return AclInfo(subject=f"User:{user}", policies=[PolicyInfo(entries=entries)])


async def test_a_producer_sends_to_allowed_topics_only(secured: Cluster) -> None:
    addr = secured.broker_addr
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ROOT]) as root:
        await root.create_user(addr, UserInfo(username="alice", password="secret-of-alice"))
        await root.create_acl(addr, allow("Topic:Mine*", actions="Pub"))
        for topic in ("MineToo", "Theirs"):
            await root.create_topic(addr, TopicConfig(topic_name=topic))
        async with Producer("PG-alice", secured.namesrv_addr, rpc_hooks=[ALICE]) as producer:
            await producer.send(Message("MineToo", b"allowed"))
            with pytest.raises(GantryError, match="no permission to access Topic:Theirs"):
                await producer.send(Message("Theirs", b"refused"))
        stored = await root.topic_stats(addr, "Theirs")
        assert sum(offsets.max_offset for offsets in stored.values()) == 0
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ALICE]) as alice:
        with pytest.raises(RequestRefused, match=r"NO_PERMISSION.*Cluster:DefaultCluster"):
            await alice.broker_config(addr)
    async with AdminClient(secured.namesrv_addr) as unsigned:
        with pytest.raises(RequestRefused, match="username cannot be null"):
            await unsigned.runtime_info(addr)


async def test_no_stored_message_of_another_topic_is_readable(secured: Cluster) -> None:
    """By its position: with the ids of other topics, or sent back to a group of one's own."""
    addr = secured.broker_addr
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ROOT]) as root:
        await root.create_user(addr, UserInfo(username="reader", password="secret-of-reader"))
        acl = allow("Topic:Open", "Group:CG-r", actions="Sub,Get", user="reader")
        await root.create_acl(addr, acl)
        await root.create_group(addr, SubscriptionGroupConfig(group_name="CG-r"))
        sent = {}
        async with Producer("PG-root", secured.namesrv_addr, rpc_hooks=[ROOT]) as producer:
            for topic in ("Open", "Closed"):
                await root.create_topic(addr, TopicConfig(topic_name=topic))
                sent[topic] = await producer.send(Message(topic, topic.encode()))
    offsets = {topic: parse_offset_msg_id(each.offset_msg_id)[2] for topic, each in sent.items()}
    hook = AclRpcHook("reader", "secret-of-reader")
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[hook]) as reader:
        for named in (None, "Open"):
            with pytest.raises(RequestRefused, match="to access Topic:Closed"):
                await reader.view_message(addr, offsets["Closed"], named)
            assert (await reader.view_message(addr, offsets["Open"], named)).body == b"Open"
    client = RemotingClient(name="reader", rpc_hooks=[hook])
    answers = {}
    for topic, offset in offsets.items():
        header = ConsumerSendMsgBackRequestHeader(offset=offset, group="CG-r", delay_level=0)
        back = RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        answers[topic] = await client.invoke(addr, back)
    await client.close()
    assert answers["Open"].code == ResponseCode.SUCCESS, answers["Open"].remark
    assert answers["Closed"].code == ResponseCode.NO_PERMISSION
    assert "Topic:Closed" in (answers["Closed"].remark or "")


async def test_no_code_returns_a_secret(secured: Cluster) -> None:
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ROOT]) as root:
        settings = await root.broker_config(secured.broker_addr)
        assert settings["initAuthenticationUser"] == "***"
        user = await root.user(secured.broker_addr, "root")
        assert user is not None
        assert (user.user_type, user.password) == ("Super", None)


async def test_users_survive_a_kill(secured: Cluster) -> None:
    addr = secured.broker_addr
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[ROOT]) as root:
        await root.create_user(addr, UserInfo(username="bob", password="secret-of-bob"))
    secured.kill_broker()
    secured.restart_broker()
    bob = AclRpcHook("bob", "secret-of-bob")
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[bob]) as admin:
        with pytest.raises(RequestRefused, match="User:bob has no permission"):
            await admin.users(addr)
