"""processors/inventory.py: the inventory of a broker, by Gantry's private request codes."""

import asyncio
from typing import TypeVar

from core_broker.client.admin.inventory import offered_codes
from core_broker.message.topics import dlq_topic, retry_topic
from core_broker.processors import inventory
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    KVTable,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    decode_body,
)
from core_broker.remoting.bodies.inventory import (
    ClientInventoryBody,
    GroupInventoryBody,
    TopicInventoryBody,
)
from core_broker.remoting.codes import LanguageCode, RequestCode
from core_broker.state.statistics import GROUP_GET_NUMS
from tests.support.broker_harness import BrokerHarness

T = TypeVar("T")


async def ask(broker: BrokerHarness, code: RequestCode, kind: type[T]) -> T:
    response = await broker.ask(code)
    assert response.code == 0, response.remark
    return decode_body(kind, response.body)


async def topics(broker: BrokerHarness) -> TopicInventoryBody:
    return await ask(broker, RequestCode.GET_TOPIC_INVENTORY, TopicInventoryBody)


async def groups(broker: BrokerHarness) -> GroupInventoryBody:
    return await ask(broker, RequestCode.GET_GROUP_INVENTORY, GroupInventoryBody)


async def beat(
    broker: BrokerHarness, *consumed: str, producer: str = "", language: LanguageCode
) -> None:
    subscriptions = [SubscriptionData(topic=topic) for topic in consumed]
    consumer = ConsumerData(group_name="CG", subscription_data_set=subscriptions)
    body = HeartbeatData(
        client_id=f"client-{language.name}",
        consumer_data_set=[consumer] if consumed else [],
        producer_data_set=[ProducerData(group_name=producer)] if producer else [],
    )
    await broker.ask(RequestCode.HEART_BEAT, body=body, peer=broker.peer(), language=language)


async def test_the_runtime_information_names_the_codes(broker: BrokerHarness) -> None:
    response = await broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
    assert offered_codes(decode_body(KVTable, response.body).table) == set(range(60000, 60007))
    assert offered_codes({"gantryRequestCodes": "60000,, x ,²"}) == {60000}
    assert offered_codes({}) == frozenset()


class TestTopics:
    async def test_queues_last_write_and_groups(self, broker: BrokerHarness, topic: str) -> None:
        for _ in range(5):
            broker.now_ms += 1_000
            await broker.send(topic)
        broker.ctx.offsets.commit("CG", topic, 0, 2)
        body = await topics(broker)
        found = body.topics[topic]
        assert found.queues == [(0, 5), (0, 0), (0, 0), (0, 0)]
        assert found.last_write_timestamp == body.taken_timestamp == broker.now_ms
        assert (found.put_tps, found.get_tps) == (0.0, 0.0)
        assert found.groups == {}, "CG is no group of this broker"
        broker.now_ms += inventory.CACHE_MS_MAX
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        assert (await topics(broker)).topics[topic].groups == {"CG": 3}

    async def test_a_topic_without_messages_has_no_last_write(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        assert (await topics(broker)).topics[topic].last_write_timestamp is None

    async def test_more_queues_than_a_step(self, broker: BrokerHarness) -> None:
        broker.topic("Wide", queues=3 * inventory.QUEUES_PER_STEP + 1)
        await broker.send("Wide", queue_id=2 * inventory.QUEUES_PER_STEP)
        found = (await topics(broker)).topics["Wide"]
        assert len(found.queues) == 3 * inventory.QUEUES_PER_STEP + 1
        assert found.queues[2 * inventory.QUEUES_PER_STEP] == (0, 1)
        assert found.last_write_timestamp == broker.now_ms


class TestGroups:
    async def test_lag_since_when_clients_and_dead_letters(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        start = broker.now_ms
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        for name in (dlq_topic("CG"), retry_topic("CG")):
            broker.topic(name, queues=1)
            await broker.send(name)
        for _ in range(3):
            await broker.send(topic)
            broker.now_ms += 1_000
        broker.ctx.offsets.commit("CG", topic, 0, 1)
        broker.ctx.offsets.commit("CG", retry_topic("CG"), 0, 1)
        await beat(broker, topic, retry_topic("CG"), language=LanguageCode.GO)
        found = (await groups(broker)).groups["CG"]
        assert found.topics == {topic: 2, retry_topic("CG"): 0}
        assert found.oldest_pending_timestamp == start + 1_000
        assert (found.clients, found.dead_letters, found.consume_tps) == (1, 1, 0.0)
        assert found.message_model == "CLUSTERING"

    async def test_the_consume_rate_of_each_topic(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        broker.topic("Idle", queues=1)
        broker.topic("Other", queues=1)
        statistics, counts = broker.ctx.statistics, {topic: 50, "Idle": 0, "Other": 20}
        for name in counts:
            broker.ctx.offsets.commit("CG", name, 0, 0)
            statistics.add(GROUP_GET_NUMS, f"{name}@CG", 0)
        statistics.sample(0)
        for name, count in counts.items():
            statistics.add(GROUP_GET_NUMS, f"{name}@CG", count)
        statistics.sample(10_000)
        found = (await groups(broker)).groups["CG"]
        assert found.topic_tps == {topic: 5.0, "Other": 2.0}
        assert found.consume_tps == 7.0
        rates = {name: each.get_tps for name, each in (await topics(broker)).topics.items()}
        assert (rates[topic], rates["Idle"], rates["Other"]) == (5.0, 0.0, 2.0)

    async def test_a_group_without_offsets(self, broker: BrokerHarness) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        found = (await groups(broker)).groups["CG"]
        assert (found.topics, found.oldest_pending_timestamp) == ({}, None)
        assert (found.clients, found.dead_letters) == (0, 0)
        assert (found.consume_tps, found.topic_tps) == (0.0, {})

    async def test_unsubscribed_topics_are_left_out(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        await broker.send(topic)
        broker.ctx.offsets.commit("CG", topic, 0, 0)
        await beat(broker, "Other", language=LanguageCode.JAVA)
        assert (await groups(broker)).groups["CG"].topics == {}


class TestSnapshots:
    async def test_concurrent_requests_share_a_snapshot(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        requests = [broker.request(RequestCode.GET_TOPIC_INVENTORY) for _ in range(3)]
        assert [broker.give(request) for request in requests] == [None] * 3
        broker.now_ms += 100
        while len(broker.client.answers) < len(requests):
            await asyncio.sleep(0)
        taken = {
            decode_body(TopicInventoryBody, broker.client.answers[each.opaque].body).taken_timestamp
            for each in requests
        }
        assert len(taken) == 1

    async def test_a_snapshot_is_cached_ten_times_its_duration(self, broker: BrokerHarness) -> None:
        broker.topic("Wide", queues=10 * inventory.QUEUES_PER_STEP)
        request = broker.request(RequestCode.GET_TOPIC_INVENTORY)
        assert broker.give(request) is None
        for _ in range(3):  # iterations of the request, the snapshot task and its next step
            await asyncio.sleep(0)
        broker.now_ms += 50
        first = await topics(broker)
        broker.now_ms += 499
        assert (await topics(broker)).taken_timestamp == first.taken_timestamp
        broker.now_ms += 1
        assert (await topics(broker)).taken_timestamp == broker.now_ms

    async def test_a_topic_deleted_meanwhile_is_left_out(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        request = broker.request(RequestCode.GET_TOPIC_INVENTORY)
        assert broker.give(request) is None
        broker.ctx.topics.remove(topic, 0)
        assert topic not in (await topics(broker)).topics


class TestClients:
    async def test_each_connection_once(self, broker: BrokerHarness, topic: str) -> None:
        await beat(broker, topic, producer="PG", language=LanguageCode.JAVA)
        await beat(broker, producer="PG", language=LanguageCode.GO)
        body = await ask(broker, RequestCode.GET_ALL_CLIENTS, ClientInventoryBody)
        both, producer = sorted(body.clients, key=lambda each: each.client_id, reverse=True)
        assert (both.client_id, both.protocol, both.language) == ("client-JAVA", "remoting", "JAVA")
        assert (both.consumer_groups, both.producer_groups) == ({"CG": [topic]}, ["PG"])
        assert both.last_heartbeat_timestamp == body.taken_timestamp == broker.now_ms
        assert (producer.consumer_groups, producer.producer_groups) == ({}, ["PG"])

    async def test_nobody(self, broker: BrokerHarness) -> None:
        assert (await ask(broker, RequestCode.GET_ALL_CLIENTS, ClientInventoryBody)).clients == []
