"""processors/query.py: messages by key, by offset, and the units of a queue."""

import json

import pytest

from core_broker.message.record import decode_record, decode_records
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    QueryConsumeQueueResponseBody,
    SubscriptionData,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    ViewMessageRequestHeader,
)
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def by_key(
    broker: BrokerHarness, key: str, *, unique: bool = False, count: int = 32, end_ms: int = 2**62
) -> RemotingCommand:
    header = QueryMessageRequestHeader(
        topic="T",
        key=key,
        max_num=count,
        begin_timestamp=0,
        end_timestamp=end_ms,
        unique_key_query=unique,
    )
    return await broker.ask(RequestCode.QUERY_MESSAGE, header)


async def units(
    broker: BrokerHarness,
    topic: str,
    index: int,
    count: int,
    group: str | None = None,
    queue_id: int = 0,
) -> RemotingCommand:
    header = QueryConsumeQueueRequestHeader(
        topic=topic, queue_id=queue_id, index=index, count=count, consumer_group=group
    )
    return await broker.ask(RequestCode.QUERY_CONSUME_QUEUE, header)


class TestByKey:
    async def test_keys_and_unique_keys(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, b"1", "KEYS\x01a b\x02UNIQ_KEY\x01U1")
        await broker.send(topic, b"2", "KEYS\x01b\x02UNIQ_KEY\x01U2")
        for key, unique, bodies in (
            ("a", False, [b"1"]),
            ("b", False, [b"1", b"2"]),
            ("U2", True, [b"2"]),
        ):
            response = await by_key(broker, key, unique=unique)
            assert response.code == 0
            assert [each.body for each in decode_records(response.body)] == bodies
        assert response.ext_fields["indexLastUpdateTimestamp"] == str(broker.now_ms)

    async def test_nothing(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, b"1", "KEYS\x01a")
        for response in (await by_key(broker, "nope"), await by_key(broker, "a", end_ms=1)):
            assert (response.code, response.remark) == (
                22,
                "can not find message, maybe time range not correct",
            )
            assert "indexLastUpdatePhyoffset" in response.ext_fields

    async def test_a_unique_key_replaces_the_number_asked_for(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        for _ in range(3):
            await broker.send(topic, b"x", "UNIQ_KEY\x01U\x02KEYS\x01k")
        assert len(decode_records((await by_key(broker, "U", unique=True, count=1)).body)) == 3
        assert len(decode_records((await by_key(broker, "k", count=2)).body)) == 2

    async def test_a_dead_letter_is_found_without_read_permission(
        self, broker: BrokerHarness
    ) -> None:
        broker.topic("T", perm=2)
        await broker.send("T", b"dead", "KEYS\x01k")
        assert (await by_key(broker, "k")).code == 0


class TestByOffset:
    async def test_one_record(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, b"1")
        await broker.send(topic, b"2")
        offset = (await broker.messages(topic))[1].offset_physical
        response = await broker.ask(
            RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=offset)
        )
        assert decode_record(response.body).body == b"2"

    @pytest.mark.parametrize("offset", [1, 10**9, -1, -(2**63), 2**63 - 1])
    async def test_where_none_begins(self, broker: BrokerHarness, topic: str, offset: int) -> None:
        await broker.send(topic)
        header = ViewMessageRequestHeader(offset=offset)
        response = await broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, header)
        assert (response.code, response.remark) == (
            1,
            f"can not find message by the offset, {offset}",
        )


async def test_unconfirmed_messages_are_not_found(broker: BrokerHarness, topic: str) -> None:
    """As for pulls: a failover may drop the message."""
    await broker.send(topic, b"1", "KEYS\x01k")
    gate = broker.ctx.store.gate
    gate.confirm(broker.ctx.store.max_offset_physical)
    gate.close()
    answer = await broker.send(topic, b"2", "KEYS\x01k")
    offset = int(answer.ext_fields["msgId"][16:], 16)
    view = ViewMessageRequestHeader(offset=offset)
    found = await by_key(broker, "k")
    assert [each.body for each in decode_records(found.body)] == [b"1"]
    hidden = await broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, view)
    assert (hidden.code, hidden.remark) == (1, f"can not find message by the offset, {offset}")
    gate.confirm(broker.ctx.store.max_offset_physical)
    found = await by_key(broker, "k")
    assert [each.body for each in decode_records(found.body)] == [b"1", b"2"]
    shown = await broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, view)
    assert decode_record(shown.body).body == b"2"


class TestQueueUnits:
    async def test_a_topic_without_read_permission(self, broker: BrokerHarness) -> None:
        topic = broker.topic("%DLQ%CG", queues=1, perm=2)
        for tag in "ABC":
            await broker.send(topic, tag.encode(), f"TAGS\x01{tag}")
        response = await units(broker, topic, 1, 10)
        assert (response.code, response.remark) == (0, None)
        body = decode_body(QueryConsumeQueueResponseBody, response.body)
        assert (body.min_queue_index, body.max_queue_index) == (0, 3)
        assert [unit.tags_code for unit in body.queue_data] == [66, 67]
        stored = await broker.messages(topic)
        assert body.queue_data[0].physic_offset == stored[1].offset_physical
        assert body.queue_data[0].physic_size == stored[1].store_size

    async def test_with_the_verdict_of_a_groups_filter(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        for tag in "AB":
            await broker.send(topic, b"", f"TAGS\x01{tag}")
        response = await units(broker, topic, 0, 2, "CG")
        body = decode_body(QueryConsumeQueueResponseBody, response.body)
        assert body.filter_data == "T@CG is not online!"
        consumer = ConsumerData(
            group_name="CG",
            subscription_data_set=[SubscriptionData(topic=topic, sub_string="B")],
        )
        beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
        await broker.ask(RequestCode.HEART_BEAT, body=beat)
        response = await units(broker, topic, 0, 2, "CG")
        body = decode_body(QueryConsumeQueueResponseBody, response.body)
        assert [unit.matches for unit in body.queue_data] == [False, True]
        assert body.subscription_data is not None
        assert body.filter_data == "null"

    async def test_of_a_group_with_an_expression(self, broker: BrokerHarness, topic: str) -> None:
        subscription = SubscriptionData(
            topic=topic, sub_string="a = 1", expression_type="SQL92", sub_version=1
        )
        consumer = ConsumerData(group_name="CG", subscription_data_set=[subscription])
        beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
        await broker.ask(RequestCode.HEART_BEAT, body=beat)
        response = await units(broker, topic, 0, 2, "CG")
        body = decode_body(QueryConsumeQueueResponseBody, response.body)
        assert json.loads(body.filter_data or "")["expression"] == "a = 1"

    @pytest.mark.parametrize(
        ("index", "count"), [(3, 1), (-1, 1), (0, 0), (0, -5), (2**62, 1), (0, -(2**31))]
    )
    async def test_outside_of_the_queue(
        self, broker: BrokerHarness, topic: str, index: int, count: int
    ) -> None:
        for _ in range(3):
            await broker.send(topic)
        response = await units(broker, topic, index, count)
        assert (response.code, response.remark) == (
            0,
            f"Index {index} of 0@T is not exist!",
        )
        body = decode_body(QueryConsumeQueueResponseBody, response.body)
        assert (body.queue_data, body.max_queue_index) == ([], 3)

    @pytest.mark.parametrize(("topic", "queue_id"), [("NOPE", 0), ("T", -1), ("T", 2**31 - 1)])
    async def test_no_such_queue(self, broker: BrokerHarness, topic: str, queue_id: int) -> None:
        broker.topic("T")
        response = await units(broker, topic, 0, 1, queue_id=queue_id)
        assert (response.code, response.remark) == (1, f"{queue_id}@{topic} is not exist!")

    async def test_no_more_than_the_bound(
        self, make_broker: MakeBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core_broker.processors.query.UNITS_MAX", 2)
        broker = make_broker()
        topic = broker.topic()
        for _ in range(3):
            await broker.send(topic)
        response = await units(broker, topic, 0, 2**31 - 1)
        assert len(decode_body(QueryConsumeQueueResponseBody, response.body).queue_data) == 2
