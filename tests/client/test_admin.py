"""Every request of the admin client to a real cluster."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_broker.client import AdminClient, Producer, PullStatus, SendStatus
from core_broker.errors import ClientError, ConnectFailed, RequestRefused, RequestTimeout
from core_broker.message.model import Message
from core_broker.message.record import decode_records
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.client.receiving import ClusterAddrs
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer

NewTopic = Callable[..., Awaitable[str]]


@pytest.fixture
def addr(quick_cluster: ClusterAddrs) -> str:
    return quick_cluster.broker_addr


async def test_the_cluster(admin: AdminClient, addr: str) -> None:
    info = await admin.cluster_info()
    assert info.cluster_addr_table == {"DefaultCluster": ["broker-a"]}
    assert info.broker_addr_table["broker-a"].master_addr == addr
    runtime = await admin.runtime_info(addr)
    assert runtime["brokerVersionDesc"].startswith("V")
    assert int(runtime["commitLogMaxOffset"]) >= 0


async def test_topics(admin: AdminClient, addr: str, group: str) -> None:
    topic = f"T-{group}"
    await admin.create_topic(addr, TopicConfig(topic_name=topic, read_queue_nums=3))
    assert topic in await admin.topic_list()
    (data,) = (await admin.topic_route(topic)).queue_datas
    assert (data.read_queue_nums, data.write_queue_nums, data.perm) == (3, 16, 6)
    changed = TopicConfig(topic_name=topic, read_queue_nums=3, write_queue_nums=2, perm=2)
    await admin.create_topic(addr, changed)
    config = (await admin.topic_configs(addr))[topic]
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 2, 2)
    stats = await admin.topic_stats(addr, topic)
    assert {(it.min_offset, it.max_offset) for it in stats.values()} == {(0, 0)}
    assert await admin.groups_of_topic(addr, topic) == []
    await admin.delete_topic_in_broker(addr, topic)
    await admin.delete_topic_in_namesrv(topic)
    assert topic not in await admin.topic_list()
    assert topic not in await admin.topic_configs(addr)
    with pytest.raises(RequestRefused) as caught:
        await admin.topic_route(topic)
    assert caught.value.code == ResponseCode.TOPIC_NOT_EXIST
    with pytest.raises(ClientError):
        await admin.create_topic(addr, TopicConfig(topic_name="no blanks"))


async def test_groups(admin: AdminClient, addr: str, group: str) -> None:
    config = SubscriptionGroupConfig(group_name=group, retry_max_times=3, consume_enable=False)
    await admin.create_group(addr, config)
    stored = (await admin.group_configs(addr))[group]
    assert (stored.retry_max_times, stored.consume_enable) == (3, False)
    await admin.delete_group(addr, group)
    assert group not in await admin.group_configs(addr)
    with pytest.raises(ClientError):
        await admin.create_group(addr, SubscriptionGroupConfig(group_name="no blanks"))


async def test_who_is_connected(
    quick_cluster: ClusterAddrs, admin: AdminClient, addr: str, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    async with Producer(group, quick_cluster.namesrv_addr) as producer:
        await producer.send(Message(topic, b"hi"))

        async def known() -> bool:
            try:
                connections = await admin.producer_connections(addr, group)
            except RequestRefused:
                return False
            return [it.client_id for it in connections.connection_set] == [producer.client_id]

        await eventually(known)
    for question in (admin.producer_connections, admin.consumer_connections, admin.consumer_ids):
        with pytest.raises(RequestRefused):
            await question(addr, group)


async def test_messages_are_found_by_key_id_offset_and_time(
    admin: AdminClient, addr: str, new_topic: NewTopic
) -> None:
    topic = await new_topic(2)
    sent = await admin.send(addr, Message(topic, b"first", keys=["k1", "k2"], tags="A"), 1)
    assert (sent.status, sent.queue.queue_id, sent.queue_offset) == (SendStatus.SEND_OK, 1, 0)
    await admin.send(addr, Message(topic, b"second", keys="k2", tags="B"), 1)

    async def indexed() -> bool:
        return len(await admin.query_message(addr, topic, "k2")) == 2

    await eventually(indexed)
    (message,) = await admin.query_message(addr, topic, "k1")
    assert message.body == b"first"
    (same,) = await admin.query_message(addr, topic, sent.msg_id, unique=True)
    assert same.offset_physical == message.offset_physical
    assert await admin.query_message(addr, topic, "nobody's key") == []
    assert await admin.query_message(addr, topic, "k1", begin_ms=0, end_ms=1) == []
    viewed = await admin.view_message(addr, message.offset_physical)
    assert viewed.msg_id == sent.msg_id
    with pytest.raises(RequestRefused):
        await admin.view_message(addr, message.offset_physical + 3)
    assert await admin.min_offset(addr, topic, 1) == 0
    assert await admin.max_offset(addr, topic, 1) == 2
    assert await admin.max_offset(addr, topic, 0) == 0
    assert await admin.search_offset(addr, topic, 1, 0) == 0
    assert await admin.search_offset(addr, topic, 1, viewed.store_timestamp) == 0
    assert await admin.earliest_store_time(addr, topic, 1) == viewed.store_timestamp
    assert await admin.earliest_store_time(addr, topic, 0) is None


async def test_queues_are_read_with_and_without_permission(
    admin: AdminClient, addr: str, new_topic: NewTopic
) -> None:
    topic = await new_topic(1)
    for tag in ("Aa", "BB", "C"):
        await admin.send(addr, Message(topic, tag.encode(), tags=tag), 0)

    async def visible() -> bool:
        return await admin.max_offset(addr, topic, 0) == 3

    await eventually(visible)
    pulled = await admin.pull(addr, topic, 0, 0, 32)
    assert (pulled.status, pulled.next_offset, pulled.max_offset) == (PullStatus.FOUND, 3, 3)
    filtered = await admin.pull(addr, topic, 0, 0, 32, "Aa")
    assert [message.body for message in filtered.messages] == [b"Aa"]
    raw = await admin.pull_raw(addr, topic, 0, 1, 1)
    assert [message.body for message in decode_records(raw.body)] == [b"BB"]
    assert (await admin.pull(addr, topic, 0, 3, 32)).status is PullStatus.NO_NEW_MSG
    beyond = await admin.pull(addr, topic, 0, 99, 32)
    assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 3)
    closed = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1, perm=2)
    await admin.create_topic(addr, closed)
    with pytest.raises(RequestRefused) as caught:
        await admin.pull(addr, topic, 0, 0, 32)
    assert caught.value.code == ResponseCode.NO_PERMISSION
    units = await admin.consume_queue(addr, topic, 0, 0, 10)
    assert (units.min_queue_index, units.max_queue_index, len(units.queue_data)) == (0, 3, 3)
    first = await admin.view_message(addr, units.queue_data[0].physic_offset, topic)
    assert first.body == b"Aa"


async def test_offsets_of_a_group(
    admin: AdminClient, addr: str, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    for number in range(3):
        await admin.send(addr, Message(topic, b"%d" % number), 0)
    await admin.create_group(addr, SubscriptionGroupConfig(group_name=group))
    await admin.update_consumer_offset(addr, group, topic, 0, 2)
    assert await admin.query_consumer_offset(addr, group, topic, 0) == 2
    (offsets,) = (await admin.consume_stats(addr, group, topic)).offset_table.values()
    assert (offsets.broker_offset, offsets.consumer_offset) == (3, 2)


async def test_settings_of_a_broker(admin: AdminClient, addr: str) -> None:
    before = await admin.broker_config(addr)
    assert before["brokerName"] == "broker-a"
    await admin.update_broker_config(addr, {"fileReservedTime": "71"})
    assert (await admin.broker_config(addr))["fileReservedTime"] == "71"
    for settings in ({"a b": "1"}, {"": "1"}, {"key": "two\nlines=1"}):
        with pytest.raises(ClientError):
            await admin.update_broker_config(addr, settings)


async def test_statistics(admin: AdminClient, addr: str, new_topic: NewTopic) -> None:
    topic = await new_topic(1)
    await admin.send(addr, Message(topic, b"hi"), 0)
    data = await admin.broker_stats(addr, "TOPIC_PUT_NUMS", topic)
    assert data.stats_day.sum >= 0
    with pytest.raises(RequestRefused):
        await admin.broker_stats(addr, "TOPIC_PUT_NUMS", "no such topic")


async def test_cleaning_keeps_messages_and_removes_queues_of_deleted_topics(
    admin: AdminClient, addr: str, new_topic: NewTopic
) -> None:
    kept, deleted = await new_topic(1), await new_topic(1)
    for topic in (kept, deleted):
        await admin.send(addr, Message(topic, b"hi"), 0)
    await admin.delete_topic_in_broker(addr, deleted)
    await admin.clean_expired_consume_queue(addr)
    await admin.clean_unused_topic(addr)
    await admin.delete_expired_commit_log(addr)
    await admin.create_topic(addr, TopicConfig(topic_name=deleted))
    assert await admin.max_offset(addr, deleted, 0) == 0
    assert await admin.min_offset(addr, kept, 0) == 0
    assert await admin.max_offset(addr, kept, 0) == 1


async def test_the_name_server(admin: AdminClient, group: str) -> None:
    assert await admin.kv_get(group, "k") is None
    assert await admin.kv_list(group) == {}
    await admin.kv_put(group, "k", "v=1;ü")
    assert await admin.kv_get(group, "k") == "v=1;ü"
    assert await admin.kv_list(group) == {"k": "v=1;ü"}
    await admin.kv_delete(group, "k")
    assert await admin.kv_get(group, "k") is None
    settings = await admin.namesrv_config()
    assert "listenPort" in settings
    assert await admin.namesrv_config(admin.namesrv_addrs[0]) == settings
    assert await admin.wipe_write_perm("broker-a") > 0
    assert await admin.add_write_perm("broker-a") > 0
    assert await admin.wipe_write_perm("no such broker") == 0


async def test_errors_name_the_peer_and_the_request() -> None:
    async with ScriptedPeer() as silent, AdminClient(silent.addr, timeout_ms=50) as admin:
        silent.on(RequestCode.GET_BROKER_CLUSTER_INFO, lambda _: None)
        with pytest.raises(RequestTimeout, match="GET_BROKER_CLUSTER_INFO"):
            await admin.cluster_info()
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1"):
            await admin.runtime_info("127.0.0.1:1")


async def test_offsets_are_cloned_by_a_question_that_names_both_groups() -> None:
    async with ScriptedPeer() as peer, AdminClient(peer.addr) as admin:
        await admin.clone_group_offset(peer.addr, "from", "to", "T")
        (request,) = peer.received(RequestCode.CLONE_GROUP_OFFSET)
    assert request.ext_fields == {
        "srcGroup": "from",
        "destGroup": "to",
        "topic": "T",
        "offline": "false",
    }


async def test_closing(quick_cluster: ClusterAddrs) -> None:
    admin = AdminClient(quick_cluster.namesrv_addr)
    await admin.cluster_info()
    await admin.close()
    await admin.close()
    with pytest.raises(ClientError):
        await admin.cluster_info()


async def test_a_client_dropped_without_close_warns(quick_cluster: ClusterAddrs) -> None:
    clients = [AdminClient(quick_cluster.namesrv_addr)]
    await clients[0].cluster_info()
    remoting = clients[0]._remoting
    with pytest.warns(ResourceWarning, match="without close"):
        clients.clear()
    await remoting.close()


async def test_many_questions_share_one_connection(admin: AdminClient, addr: str) -> None:
    await asyncio.gather(*(admin.runtime_info(addr) for _ in range(50)))
    assert len(admin._remoting.connections) == 1
