"""Further requests of the admin client, continued from test_admin.py."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_broker.client import AdminClient, ConsumeStatus, Message, MessageExt, PushConsumer
from core_broker.client.admin import AccessAccount
from core_broker.errors import RequestRefused, RequestTimeout
from core_broker.remoting.bodies import MessageQueue, SubscriptionGroupConfig, TopicConfig
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.client.receiving import ClusterAddrs
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

NewTopic = Callable[..., Awaitable[str]]
QUEUE = MessageQueue(topic="T", broker_name="b", queue_id=3)


async def test_lists_of_topics(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic
) -> None:
    topic = await new_topic(1)
    assert topic in await admin.topics_of_cluster("DefaultCluster")
    assert await admin.topics_of_cluster("no such cluster") == []
    assert {"DefaultCluster", "broker-a"} <= set(await admin.system_topics())
    own = await admin.system_topics(quick_cluster.broker_addr)
    assert "TBW102" in own
    assert topic not in own


async def test_a_topic_leaves_the_name_servers_of_one_cluster(
    quick_cluster: ClusterAddrs, admin: AdminClient, group: str
) -> None:
    topic = f"T-{group}"
    await admin.create_topic(quick_cluster.broker_addr, TopicConfig(topic_name=topic))
    await admin.delete_topic_in_broker(quick_cluster.broker_addr, topic)
    await admin.delete_topic_in_namesrv(topic, "another cluster")
    assert topic in await admin.topic_list()
    await admin.delete_topic_in_namesrv(topic, "DefaultCluster")
    assert topic not in await admin.topic_list()


async def test_offsets_that_consumers_hold_and_times_between(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    addr, topic = quick_cluster.broker_addr, await new_topic(1)
    await admin.send(addr, Message(topic, b"hi"), 0)
    was_called = asyncio.Event()
    consumer = PushConsumer(group, quick_cluster.namesrv_addr)
    consumer.subscribe(topic)

    @consumer.listener
    async def take(messages: list[MessageExt]) -> ConsumeStatus:
        was_called.set()
        return ConsumeStatus.CONSUME_SUCCESS

    async with consumer:
        await asyncio.wait_for(was_called.wait(), 30)

        async def held() -> bool:
            status = await admin.consumer_status(addr, group, topic)
            return [list(it.values()) for it in status.values()] == [[1]]

        await eventually(held)
        assert set(await admin.consumer_status(addr, group, topic)) == {consumer.client_id}
        (span,) = await admin.consume_time_span(addr, group, topic)
        assert (span.message_queue.topic, span.message_queue.queue_id) == (topic, 0)
        assert 0 < span.min_time_stamp <= span.max_time_stamp


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":[{"topic":"T","brokerName":"b","queueId":3,"offset":9}]}',
        b'{"offsetTable":{{"topic":"T","brokerName":"b","queueId":3}:9}}',
    ],
)
async def test_a_reset_for_cplus_consumers(body: bytes) -> None:
    async with ScriptedPeer() as peer, AdminClient(peer.addr) as admin:
        peer.on(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, lambda _: ok(body=body))
        assert await admin.reset_offset(peer.addr, "G", "T", 0, cplus=True) == {QUEUE: 9}
        (request,) = peer.received(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
    assert request.language is LanguageCode.CPP


async def test_a_reset_without_an_answer_in_it() -> None:
    async with ScriptedPeer() as peer, AdminClient(peer.addr) as admin:
        assert await admin.reset_offset(peer.addr, "G", "T", 0) == {}
        assert await admin.consumer_status(peer.addr, "G", "T") == {}


async def test_a_change_is_sent_to_one_name_server_only() -> None:
    async with (
        ScriptedPeer() as first,
        ScriptedPeer() as second,
        AdminClient(f"{first.addr};{second.addr}") as admin,
    ):
        code = RequestCode.WIPE_WRITE_PERM_OF_BROKER
        second.on(code, lambda _: RemotingCommand.response(header={"wipeTopicCount": "7"}))
        assert await admin.wipe_write_perm("b", second.addr) == 7
        await admin.update_namesrv_config({"k": "v"}, second.addr)
        assert not first.requests
        assert second.received(RequestCode.UPDATE_NAMESRV_CONFIG)[0].body == b"k=v\n"
        await admin.update_namesrv_config({"k": "v"})
        assert len(first.requests) == 1


async def test_access_control_is_refused_where_there_is_none() -> None:
    async with ScriptedPeer() as peer, AdminClient(peer.addr) as admin:
        failed = ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED
        peer.on(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, lambda _: refuse(failed, "no ACL"))
        with pytest.raises(RequestRefused, match="no ACL"):
            await admin.update_access_account(peer.addr, AccessAccount("a", "s"))
        (request,) = peer.requests
    assert request.ext_fields == {"accessKey": "a", "secretKey": "s", "admin": "false"}


async def test_stats_of_a_broker_have_a_deadline_of_their_own() -> None:
    async with ScriptedPeer() as peer, AdminClient(peer.addr) as admin:
        peer.on(RequestCode.GET_BROKER_CONSUME_STATS, lambda _: None)
        with pytest.raises(RequestTimeout, match="GET_BROKER_CONSUME_STATS"):
            await admin.broker_consume_stats(peer.addr, is_order=True, timeout_ms=500)
        (request,) = peer.requests
    assert request.ext_fields == {"isOrder": "true"}


async def test_the_slowest_group_of_a_topic(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    addr, topic = quick_cluster.broker_addr, await new_topic(1)
    for _ in range(3):
        await admin.send(addr, Message(topic, b"hi"), 0)
    for name, offset in ((f"{group}-a", 1), (f"{group}-b", 3)):
        await admin.create_group(addr, SubscriptionGroupConfig(group_name=name))
        await admin.update_consumer_offset(addr, name, topic, 0, offset)
    assert await admin.correction_offsets(addr, topic, f"{group}-b") == {0: 1}
    left_out = await admin.correction_offsets(addr, topic, f"{group}-b", [f"{group}-a"])
    assert left_out[0] >= 3


async def test_a_half_message_that_is_none_is_not_checked_again(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic
) -> None:
    addr = quick_cluster.broker_addr
    sent = await admin.send(addr, Message(await new_topic(1), b"hi"), 0)
    with pytest.raises(RequestRefused, match="RMQ_SYS_TRANS_HALF_TOPIC"):
        await admin.resume_check_half_message(addr, sent.offset_msg_id)
