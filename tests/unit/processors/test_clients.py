"""processors/clients.py, connections.py and locks.py: heartbeats, good-byes, notices, locks."""

import asyncio
from typing import Any

import pytest

from core_broker.processors.locks import QUEUES_PER_REQUEST_MAX
from core_broker.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerConnection,
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    ProducerConnection,
    ProducerData,
    ProducerTableInfo,
    SubscriptionData,
    SubscriptionGroupConfig,
    decode_body,
)
from core_broker.remoting.codes import LanguageCode, RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetProducerConnectionListRequestHeader,
    UnregisterClientRequestHeader,
)
from core_broker.state.channels import CHANNEL_EXPIRED_MS
from core_broker.state.queue_locks import LOCK_LIVE_MS
from tests.support.broker_harness import BrokerHarness, Peer
from tests.unit.processors.conftest import MakeBroker

CPP_HEARTBEAT = (
    b'{"clientID":"9335-127.0.0.1@DEFAULT","consumerDataSet":[{"consumeFromWhere":0,"consumeType":1,'
    b'"groupName":"CG","messageModel":1,"subscriptionDataSet":[{"subString":"*",'
    b'"subVersion":"1795249951617","topic":"%RETRY%CG"},{"codeSet":[0,0],"subString":"A || B",'
    b'"subVersion":"1795249951617","tagsSet":["A","B"],"topic":"T1"}]}],'
    b'"producerDataSet":[{"groupName":"PG"}]}\n'
)


def consumer(group: str = "CG", *topics: str, model: str = "CLUSTERING") -> ConsumerData:
    return ConsumerData(
        group_name=group,
        message_model=model,
        subscription_data_set=[SubscriptionData(topic=topic) for topic in topics or ("T",)],
    )


async def beat(
    broker: BrokerHarness,
    peer: Peer,
    *consumers: ConsumerData,
    client_id: str = "",
    producers: Any = (),
) -> RemotingCommand:
    body = HeartbeatData(
        client_id=client_id or f"id{peer.peer_port}",
        consumer_data_set=list(consumers),
        producer_data_set=[ProducerData(group_name=name) for name in producers],
    )
    return await broker.ask(RequestCode.HEART_BEAT, body=body, peer=peer)


async def told(peer: Peer) -> list[str]:
    """The groups in a peer's change notifications; clears the notifications."""
    await asyncio.sleep(0)
    notices, peer.told = peer.told, []
    assert all(each.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED for each in notices)
    return [each.ext_fields["consumerGroup"] for each in notices]


class TestHeartbeat:
    async def test_makes_group_and_retry_topic(self, broker: BrokerHarness) -> None:
        response = await beat(broker, broker.client, consumer("CG"), producers=["PG"])
        assert (response.code, response.remark, response.ext_fields) == (0, None, {})
        assert broker.ctx.groups.get("CG") == SubscriptionGroupConfig(group_name="CG")
        retry = broker.ctx.topics.get("%RETRY%CG")
        assert retry is not None
        assert (retry.read_queue_nums, retry.perm) == (1, 6)
        assert broker.saver.saved == ["subscriptionGroup.json", "topics.json"]
        assert broker.registrar.topics == ["%RETRY%CG"]

    async def test_of_a_cpp_client(self, broker: BrokerHarness) -> None:
        response = await broker.ask(RequestCode.HEART_BEAT, body=CPP_HEARTBEAT)
        assert response.code == 0
        group = broker.ctx.consumers.group("CG")
        assert group is not None
        assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
        assert group.client_ids() == ["9335-127.0.0.1@DEFAULT"]
        assert broker.ctx.producers.groups == ["PG"]

    async def test_heartbeat_of_a_group_that_cannot_be_created(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(auto_create_subscription_group=False)
        assert (await beat(broker, broker.client, consumer("CG"))).code == 0
        assert broker.ctx.groups.get("CG") is None
        assert broker.ctx.consumers.group("CG") is not None

    async def test_empty_groups_count_as_absent(self, broker: BrokerHarness) -> None:
        await beat(broker, broker.client, consumer(""), producers=[""])
        assert broker.ctx.groups.get("") is None
        assert broker.ctx.consumers.groups == []
        assert broker.ctx.producers.groups == []

    @pytest.mark.parametrize(
        "body",
        [
            HeartbeatData(client_id="x" * 2000),
            HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name="g" * 2000)]),
            HeartbeatData(
                client_id="c",
                producer_data_set=[ProducerData(group_name=f"g{n}") for n in range(1001)],
            ),
            HeartbeatData(
                client_id="c",
                consumer_data_set=[consumer("CG", *(f"t{n}" for n in range(10_001)))],
            ),
            HeartbeatData(
                client_id="c",
                consumer_data_set=[
                    consumer(f"CG{group}", *(f"t{n}" for n in range(2_001))) for group in range(5)
                ],
            ),
        ],
    )
    async def test_oversize_heartbeats(self, broker: BrokerHarness, body: HeartbeatData) -> None:
        response = await broker.ask(RequestCode.HEART_BEAT, body=body)
        assert response.code == 1
        assert (response.remark or "").startswith("a heartbeat with ")
        assert broker.ctx.consumers.groups == []


class TestNotices:
    async def test_everybody_hears_of_a_newcomer_once_per_turn(self, broker: BrokerHarness) -> None:
        first, second, third = broker.peer(), broker.peer(), broker.peer()
        await beat(broker, first, consumer())
        assert await told(first) == ["CG"]
        await beat(broker, first, consumer())
        assert await told(first) == []
        for peer in (second, third):
            broker.give(broker.request(34, body=HeartbeatData(
                client_id=str(peer.peer_port), consumer_data_set=[consumer()]
            )), peer)  # fmt: skip
        assert [await told(peer) for peer in (first, second, third)] == [["CG"]] * 3

    async def test_a_new_topic_is_news_and_leaving_too(self, broker: BrokerHarness) -> None:
        first, second = broker.peer(), broker.peer()
        for peer in (first, second):
            await beat(broker, peer, consumer())
            await asyncio.sleep(0)
        first.told.clear()
        await beat(broker, second, consumer("CG", "T", "U"))
        assert await told(first) == ["CG"]
        broker.requests.clients.disconnected(second)  # type: ignore[arg-type]
        assert await told(first) == ["CG"]

    async def test_good_bye_is_news(self, broker: BrokerHarness) -> None:
        first, second = broker.peer(), broker.peer()
        for peer in (first, second):
            await beat(broker, peer, consumer())
            await asyncio.sleep(0)
        first.told.clear()
        header = UnregisterClientRequestHeader(
            client_id="x", producer_group="", consumer_group="CG"
        )
        assert (await broker.ask(RequestCode.UNREGISTER_CLIENT, header, peer=second)).code == 0
        assert await told(first) == ["CG"]
        assert (await broker.ask(RequestCode.UNREGISTER_CLIENT, header, peer=second)).code == 0
        assert await told(first) == []

    async def test_a_group_may_not_want_to_hear(self, broker: BrokerHarness) -> None:
        silent = SubscriptionGroupConfig(group_name="CG", notify_consumer_ids_changed_enable=False)
        broker.ctx.groups.put(silent, 0)
        first, second = broker.peer(), broker.peer()
        await beat(broker, first, consumer())
        await beat(broker, second, consumer())
        broker.requests.clients.disconnected(second)  # type: ignore[arg-type]
        assert await told(first) == []

    async def test_broadcasting_groups_get_no_notification(self, broker: BrokerHarness) -> None:
        peer = broker.peer()
        await beat(broker, peer, consumer(model="BROADCASTING"))
        assert await told(peer) == []

    async def test_switched_off_for_a_group_or_for_all(self, make_broker: MakeBroker) -> None:
        broker = make_broker()
        broker.ctx.groups.put(
            SubscriptionGroupConfig(group_name="CG", notify_consumer_ids_changed_enable=False), 0
        )
        peer = broker.peer()
        await beat(broker, peer, consumer())
        assert await told(peer) == []
        broker = make_broker(notify_consumer_ids_changed_enable=False)
        peer = broker.peer()
        await beat(broker, peer, consumer())
        assert await told(peer) == []

    async def test_a_disconnected_member_does_not_block_notifications(
        self, broker: BrokerHarness
    ) -> None:
        gone, here = broker.peer(), broker.peer()
        await beat(broker, gone, consumer())
        gone.closed_for = "gone"
        await beat(broker, here, consumer())
        assert await told(here) == ["CG"]


class TestSilence:
    async def test_silent_clients_are_closed(self, broker: BrokerHarness) -> None:
        silent, loud = broker.peer(), broker.peer()
        await beat(broker, silent, consumer(), producers=["PG"])
        broker.now_ms += 1
        await beat(broker, loud, consumer())
        broker.now_ms += CHANNEL_EXPIRED_MS
        broker.requests.clients.close_silent()
        assert (silent.closed_for, loud.closed_for) == ("no heartbeat", "")


class TestLists:
    async def test_members_of_a_group(self, broker: BrokerHarness) -> None:
        await beat(broker, broker.client, consumer(), client_id="c1")
        header = GetConsumerListByGroupRequestHeader(consumer_group="CG")
        response = await broker.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        assert response.body == b'{"consumerIdList":["c1"]}'
        assert decode_body(GetConsumerListByGroupResponseBody, response.body)
        header = GetConsumerListByGroupRequestHeader(consumer_group="G")
        response = await broker.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        assert (response.code, response.remark) == (1, "no consumer for this group, G")

    async def test_connections_of_consumers(self, broker: BrokerHarness) -> None:
        await beat(broker, broker.client, consumer("CG", "T"), client_id="c1")
        header = GetConsumerConnectionListRequestHeader(consumer_group="CG")
        response = await broker.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        body = decode_body(ConsumerConnection, response.body)
        (shown,) = body.connection_set
        assert (shown.client_id, shown.client_addr) == ("c1", broker.client.peer)
        assert (shown.language, shown.version) == ("JAVA", 409)
        assert body.subscription_table.keys() == {"T"}
        header = GetConsumerConnectionListRequestHeader(consumer_group="NOPE")
        response = await broker.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        assert (response.code, response.remark) == (206, "the consumer group[NOPE] not online")

    async def test_connections_of_producers(self, broker: BrokerHarness) -> None:
        await beat(broker, broker.client, client_id="p1", producers=["PG"])
        header = GetProducerConnectionListRequestHeader(producer_group="PG")
        response = await broker.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
        (shown,) = decode_body(ProducerConnection, response.body).connection_set
        assert shown.client_id == "p1"
        header = GetProducerConnectionListRequestHeader(producer_group="NOPE")
        response = await broker.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
        assert (response.code, response.remark) == (1, "the producer group[NOPE] not exist")
        response = await broker.ask(RequestCode.GET_ALL_PRODUCER_INFO)
        (info,) = decode_body(ProducerTableInfo, response.body).data["PG"]
        assert (info.remote_ip, info.language) == (broker.client.peer, "JAVA")


class TestCheckConfig:
    @pytest.mark.parametrize(("kind", "code"), [("TAG", 0), ("SQL92", 1)])
    async def test_tags_only(self, broker: BrokerHarness, kind: str, code: int) -> None:
        body = CheckClientRequestBody(
            client_id="c",
            group="G",
            subscription_data=SubscriptionData(topic="T", expression_type=kind),
        )
        assert (await broker.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)).code == code


class TestLocks:
    def body(self, client_id: str, *queues: int, topic: str = "T") -> LockBatchRequestBody:
        return LockBatchRequestBody(
            consumer_group="CG",
            client_id=client_id,
            mq_set=[MessageQueue(topic, "b", queue) for queue in queues],
        )

    async def lock(self, broker: BrokerHarness, client_id: str, *queues: int) -> list[int]:
        response = await broker.ask(RequestCode.LOCK_BATCH_MQ, body=self.body(client_id, *queues))
        granted = decode_body(LockBatchResponseBody, response.body).lock_ok_mq_set
        return [queue.queue_id for queue in granted]

    async def test_lock_and_unlock(self, broker: BrokerHarness) -> None:
        assert await self.lock(broker, "c1", 0, 1) == [0, 1]
        assert await self.lock(broker, "c2", 1, 2) == [2]
        await broker.ask(RequestCode.UNLOCK_BATCH_MQ, body=self.body("c1", 1))
        assert await self.lock(broker, "c2", 1) == [1]

    async def test_a_lock_expires_without_renewal(self, broker: BrokerHarness) -> None:
        assert await self.lock(broker, "c1", 0, 1) == [0, 1]
        broker.now_ms += LOCK_LIVE_MS
        assert await self.lock(broker, "c1", 0) == [0]
        broker.now_ms += 1
        assert await self.lock(broker, "c2", 0, 1) == [1]

    async def test_neither_good_bye_nor_a_lost_connection_gives_locks_back(
        self, broker: BrokerHarness
    ) -> None:
        await beat(broker, broker.client, consumer(), client_id="c1")
        assert await self.lock(broker, "c1", 0) == [0]
        leave = UnregisterClientRequestHeader(client_id="c1", consumer_group="CG")
        await broker.ask(RequestCode.UNREGISTER_CLIENT, leave)
        broker.requests.clients.disconnected(broker.client)  # type: ignore[arg-type]
        assert await self.lock(broker, "c2", 0) == []

    @pytest.mark.parametrize("code", [RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ])
    @pytest.mark.parametrize("count", [QUEUES_PER_REQUEST_MAX + 1, 100_000])
    async def test_too_many_queues(
        self, broker: BrokerHarness, code: RequestCode, count: int
    ) -> None:
        response = await broker.ask(code, body=self.body("c", *range(count)))
        assert response.code == 1
        limits = ("a lock request with ", "ProtocolError: a body of ")
        assert str(response.remark).startswith(limits)
        assert len(broker.ctx.locks) == 0

    @pytest.mark.parametrize(
        "body",
        [
            {"client_id": "x" * 2000},
            {"client_id": "c", "topic": "bad name"},
            {"client_id": "c", "topic": "t" * 1000},
        ],
    )
    async def test_oversize_names(self, broker: BrokerHarness, body: dict[str, str]) -> None:
        client_id = body.pop("client_id")
        response = await broker.ask(RequestCode.LOCK_BATCH_MQ, body=self.body(client_id, 0, **body))
        assert response.code == 1
        assert len(broker.ctx.locks) == 0


async def test_a_language_without_a_name_of_its_own_is_shown(broker: BrokerHarness) -> None:
    body = HeartbeatData(client_id="go", producer_data_set=[ProducerData(group_name="PG")])
    await broker.ask(RequestCode.HEART_BEAT, body=body, language=LanguageCode.OTHER)
    response = await broker.ask(RequestCode.GET_ALL_PRODUCER_INFO)
    assert decode_body(ProducerTableInfo, response.body).data["PG"][0].language == "OTHER"
