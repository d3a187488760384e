"""processors/pull.py: answers to pulls, remarks of refusals, and long polling."""

import asyncio
from typing import Any

import pytest

from core_broker.message.record import decode_records
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
    SubscriptionGroupConfig,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import VIP_PORT, BrokerHarness, Peer
from tests.support.broker_requests import pull_header
from tests.support.stores import NOW_MS
from tests.unit.processors.conftest import MakeBroker

FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


def longs(response: RemotingCommand) -> tuple[int, int, int]:
    fields = response.ext_fields
    assert fields["suggestWhichBrokerId"] == "0"
    return int(fields["nextBeginOffset"]), int(fields["minOffset"]), int(fields["maxOffset"])


def bodies(response: RemotingCommand) -> list[bytes]:
    return [each.body for each in decode_records(response.body)]


async def beat(
    broker: BrokerHarness,
    *,
    topic: str = "T",
    expression: str = "*",
    version: int = 5,
    model: str = "CLUSTERING",
) -> None:
    subscription = SubscriptionData(topic=topic, sub_string=expression, sub_version=version)
    consumer = ConsumerData(
        group_name="CG", message_model=model, subscription_data_set=[subscription]
    )
    body = HeartbeatData(client_id="c1", consumer_data_set=[consumer])
    assert (await broker.ask(RequestCode.HEART_BEAT, body=body)).code == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"slave_read_enable": True, "access_message_in_memory_max_ratio": 0}, "2"),
        ({"slave_read_enable": True}, "0"),
        ({"access_message_in_memory_max_ratio": 0}, "0"),
    ],
    ids=["cold data", "data in memory", "no reads from slaves"],
)
async def test_a_pull_of_cold_data_suggests_the_slave_of_the_group(
    make_broker: MakeBroker, settings: dict[str, object], expected: str
) -> None:
    broker = make_broker(**settings)
    topic = broker.topic("T")
    broker.ctx.groups.put(
        SubscriptionGroupConfig(group_name="CG", which_broker_when_consume_slowly=2), NOW_MS
    )
    for body in (b"1", b"2"):
        await broker.send(topic, body)
    response = await broker.pull(topic, 0)
    assert bodies(response) == [b"1", b"2"]
    assert response.ext_fields["suggestWhichBrokerId"] == expected


class TestReading:
    async def test_found(self, broker: BrokerHarness, topic: str) -> None:
        for body in (b"1", b"2", b"3"):
            await broker.send(topic, body)
        response = await broker.pull(topic, 1)
        assert (response.code, response.remark) == (0, "FOUND")
        assert bodies(response) == [b"2", b"3"]
        assert longs(response) == (3, 0, 3)

    async def test_lite_pull_answers_like_pull(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, b"1")
        response = await broker.ask(RequestCode.LITE_PULL_MESSAGE, pull_header(topic, sys_flag=20))
        assert bodies(response) == [b"1"]

    @pytest.mark.parametrize(
        ("offset", "code", "remark", "following"),
        [
            (3, 19, "OFFSET_OVERFLOW_ONE", 3),
            (4, 21, "OFFSET_OVERFLOW_BADLY", 3),
            (-1, 21, "OFFSET_TOO_SMALL", 0),
            (2**62, 21, "OFFSET_OVERFLOW_BADLY", 3),
        ],
    )
    async def test_outside_of_the_queue(
        self, broker: BrokerHarness, topic: str, offset: int, code: int, remark: str, following: int
    ) -> None:
        for _ in range(3):
            await broker.send(topic)
        response = await broker.pull(topic, offset)
        assert (response.code, response.remark) == (code, remark)
        assert longs(response) == (following, 0, 3)

    @pytest.mark.parametrize(("offset", "code"), [(0, 19), (5, 21)])
    async def test_an_empty_queue(
        self, broker: BrokerHarness, topic: str, offset: int, code: int
    ) -> None:
        response = await broker.pull(topic, offset)
        assert response.code == code
        assert longs(response) == (0, 0, 0)

    async def test_the_filter_of_the_request(self, broker: BrokerHarness, topic: str) -> None:
        for tag in ("A", "B", "C"):
            await broker.send(topic, tag.encode(), f"TAGS\x01{tag}")
        await broker.send(topic, b"none")
        response = await broker.pull(topic, subscription="A || C")
        assert bodies(response) == [b"A", b"C"]
        assert longs(response)[0] == 4
        response = await broker.pull(topic, subscription="X")
        assert (response.code, response.remark) == (20, "NO_MATCHED_MESSAGE")
        assert longs(response)[0] == 4

    @pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (1000, 3), (0, 1), (-5, 1)])
    async def test_at_least_one_message_and_at_most_the_requested_number(
        self, broker: BrokerHarness, topic: str, count: int, expected: int
    ) -> None:
        for _ in range(3):
            await broker.send(topic)
        assert len(bodies(await broker.pull(topic, max_msg_nums=count))) == expected

    async def test_read_messages_are_counted(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic)
        response = await broker.pull(topic)
        totals = broker.ctx.statistics.totals()
        assert totals["GROUP_GET_NUMS"] == {"T@CG": 1}
        assert totals["GROUP_GET_SIZE"] == {"T@CG": len(response.body)}
        assert totals["GROUP_GET_LATENCY"].keys() == {"0@T@CG"}


class TestSubscriptionOfTheHeartbeat:
    async def test_java_push_consumers_pull_without_text(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic, b"A", "TAGS\x01A")
        await broker.send(topic, b"B", "TAGS\x01B")
        await beat(broker, expression="B")
        response = await broker.pull(topic, sys_flag=0, sub_version=5, subscription=None)
        assert bodies(response) == [b"B"]

    async def test_offline(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.pull(topic, sys_flag=0)
        assert (response.code, response.remark) == (
            24,
            f"the consumer's group info not exist{FAQ}",
        )

    async def test_not_subscribed(self, broker: BrokerHarness, topic: str) -> None:
        await beat(broker, topic="Other")
        response = await broker.pull(topic, sys_flag=0)
        assert (response.code, response.remark) == (
            24,
            f"the consumer's subscription not exist{FAQ}",
        )

    async def test_an_older_subscription_is_refused(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await beat(broker, expression="A", version=5)
        response = await broker.pull(topic, sys_flag=0, sub_version=6)
        assert (response.code, response.remark) == (25, "the consumer's subscription not latest")

    async def test_an_older_subscription_to_all_tags_is_accepted(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic, b"A", "TAGS\x01A")
        await broker.send(topic, b"B", "TAGS\x01B")
        await beat(broker, version=5)
        response = await broker.pull(topic, sys_flag=0, sub_version=6)
        assert bodies(response) == [b"A", b"B"]
        # The broker must know an expression before it can evaluate the expression.
        response = await broker.pull(topic, sys_flag=0, sub_version=6, expression_type="SQL92")
        assert response.code == 25

    async def test_broadcasting_forbidden_by_the_group(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        broker.ctx.groups.put(
            SubscriptionGroupConfig(group_name="CG", consume_broadcast_enable=False), 0
        )
        await beat(broker, model="BROADCASTING")
        response = await broker.pull(topic, sys_flag=0)
        assert (response.code, response.remark) == (
            16,
            "the consumer group[CG] can not consume by broadcast way",
        )


class TestRefusals:
    async def test_in_the_order_of_the_checks(self, make_broker: MakeBroker) -> None:
        broker = make_broker(broker_permission=2, auto_create_subscription_group=False)
        response = await broker.pull("NOPE")
        assert (response.code, response.remark) == (
            16,
            "the broker[127.0.0.1] pulling message is forbidden",
        )
        broker = make_broker(auto_create_subscription_group=False)
        response = await broker.pull("NOPE")
        assert response.code == 26
        assert response.remark == f"subscription group [CG] does not exist, {FAQ}"
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG", consume_enable=False), 0)
        response = await broker.pull("NOPE")
        assert (response.code, response.remark) == (16, "subscription group no permission, CG")
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        response = await broker.pull("NOPE")
        assert response.code == 17
        assert response.remark == f"topic[NOPE] not exist, apply first please! {FAQ}"

    async def test_a_topic_without_read_permission(self, broker: BrokerHarness) -> None:
        response = await broker.pull(broker.topic("%DLQ%CG", queues=1, perm=2))
        assert (response.code, response.remark) == (
            16,
            "the topic[%DLQ%CG] pulling message is forbidden",
        )

    @pytest.mark.parametrize("queue_id", [4, -1, 2**31 - 1, -(2**31)])
    async def test_a_missing_queue(self, broker: BrokerHarness, topic: str, queue_id: int) -> None:
        response = await broker.pull(topic, queue_id=queue_id)
        assert (response.code, response.remark) == (
            1,
            f"queueId[{queue_id}] is illegal, topic:[T] topicConfig.readQueueNums:[4] "
            f"consumer:[/{broker.client.peer}]",
        )

    async def test_a_malformed_subscription(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.pull(topic, subscription="||")
        assert (response.code, response.remark) == (23, "parse the consumer's subscription failed")

    async def test_sql(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.pull(topic, subscription="a > 1", expression_type="SQL92")
        assert (response.code, response.remark) == (
            1,
            "The broker does not support consumer to filter message by SQL92",
        )

    async def test_on_the_vip_port(self, broker: BrokerHarness, topic: str) -> None:
        peer = broker.peer()
        peer.local_port = VIP_PORT
        response = await broker.ask(RequestCode.PULL_MESSAGE, pull_header(topic), peer=peer)
        assert (response.code, response.remark) == (3, " request type 11 not supported")


class TestHolding:
    def hold(
        self, broker: BrokerHarness, peer: Peer, topic: str = "T", **fields: Any
    ) -> RemotingCommand:
        header = pull_header(topic, **{"sys_flag": 6, **fields})
        request = broker.request(RequestCode.PULL_MESSAGE, header)
        assert broker.give(request, peer) is None
        return request

    async def test_a_message_ends_the_wait_in_its_iteration(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        waiting = broker.peer()
        request = self.hold(broker, waiting)
        await broker.send(topic, b"at last")
        assert bodies(waiting.answers[request.opaque]) == [b"at last"]

    async def test_a_message_with_a_different_tag_wakes_no_pull(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        waiting = broker.peer()
        request = self.hold(broker, waiting, subscription="A")
        await broker.send(topic, b"no", "TAGS\x01B")
        assert waiting.answers == {}
        await broker.send(topic, b"yes", "TAGS\x01A")
        assert bodies(waiting.answers[request.opaque]) == [b"yes"]

    async def test_the_deadline_ends_the_wait_with_19(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        waiting = broker.peer()
        request = self.hold(broker, waiting, suspend_timeout_millis=15_000)
        broker.now_ms += 14_999
        broker.requests.pulls.expire()
        assert waiting.answers == {}
        broker.now_ms += 300
        broker.requests.pulls.expire()
        answer = waiting.answers[request.opaque]
        assert answer.code == 19
        assert longs(answer) == (0, 0, 0)

    async def test_short_polling(self, make_broker: MakeBroker) -> None:
        broker = make_broker(long_polling_enable=False, short_polling_time_mills=500)
        broker.topic()
        waiting = broker.peer()
        request = self.hold(broker, waiting)
        broker.now_ms += 500
        broker.requests.pulls.expire()
        assert waiting.answers[request.opaque].code == 19

    async def test_without_the_flag_pulls_are_not_held(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        assert (await broker.pull(topic, sys_flag=4)).code == 19

    async def test_a_stop_answers_all_pulls_and_holds_no_pull(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        waiting = broker.peer()
        request = self.hold(broker, waiting)
        broker.ctx.is_accepting = False
        broker.requests.pulls.release_all()
        assert waiting.answers[request.opaque].code == 19
        assert (await broker.pull(topic, sys_flag=6)).code == 19

    async def test_a_group_deleted_meanwhile_is_refused(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        waiting = broker.peer()
        request = self.hold(broker, waiting)
        broker.ctx.topics.remove(topic, broker.now_ms)
        broker.now_ms += 20_000
        broker.requests.pulls.expire()
        assert waiting.answers[request.opaque].code == 17

    async def test_one_message_wakes_all_groups(self, broker: BrokerHarness, topic: str) -> None:
        peers = [broker.peer() for _ in range(3)]
        requests = [
            self.hold(broker, peer, consumer_group=f"G{number}")
            for number, peer in enumerate(peers)
        ]
        await broker.send(topic, b"x")
        for peer, request in zip(peers, requests, strict=True):
            assert bodies(peer.answers[request.opaque]) == [b"x"]

    async def test_waking_many_pulls_yields_to_the_loop(
        self, broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core_broker.processors.pull.WAKE_S_MAX", -1)
        monkeypatch.setattr("core_broker.processors.pull.WOKEN_AT_ONCE", 2)
        peers = [broker.peer() for _ in range(5)]
        for number, peer in enumerate(peers):
            self.hold(broker, peer, consumer_group=f"G{number}")
        await broker.send(topic, b"x")
        assert [len(peer.answers) for peer in peers] == [1, 1, 0, 0, 0]
        await asyncio.sleep(0)
        assert [len(peer.answers) for peer in peers] == [1, 1, 1, 1, 0]
        await asyncio.sleep(0)
        assert [len(peer.answers) for peer in peers] == [1, 1, 1, 1, 1]

    async def test_a_full_table_answers_at_once(
        self, broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker.requests.held_pulls, "_capacity", 0)
        assert (await broker.pull(topic, sys_flag=6)).code == 19


class TestCommitOnPull:
    async def test_when_the_flag_is_set_and_once(self, broker: BrokerHarness, topic: str) -> None:
        await broker.pull(topic, sys_flag=5, commit_offset=7)
        assert broker.ctx.offsets.committed("CG", topic, 0) == 7
        await broker.pull(topic, sys_flag=4, commit_offset=9)
        assert broker.ctx.offsets.committed("CG", topic, 0) == 7

    async def test_zero_is_not_committed(self, broker: BrokerHarness, topic: str) -> None:
        await broker.pull(topic, sys_flag=5, commit_offset=0)
        assert broker.ctx.offsets.committed("CG", topic, 0) is None

    async def test_not_again_when_the_pull_wakes(self, broker: BrokerHarness, topic: str) -> None:
        request = broker.request(11, pull_header(topic, sys_flag=7, commit_offset=3))
        assert broker.give(request) is None
        broker.ctx.offsets.commit("CG", topic, 0, 8)
        await broker.send(topic)
        assert broker.client.answers[request.opaque].code == 0
        assert broker.ctx.offsets.committed("CG", topic, 0) == 8
