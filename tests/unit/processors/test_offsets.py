"""processors/offsets.py: committed offsets of groups, minimum and maximum offsets of queues."""

import json
from typing import Any

import pytest

from core_broker.message.topics import TRANS_HALF_TOPIC, TRANSACTION_GROUP
from core_broker.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    CloneGroupOffsetRequestHeader,
    DeleteSubscriptionGroupRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryCorrectionOffsetHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from core_broker.state import consumer_offsets
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def query(broker: BrokerHarness, topic: str, zero: bool | None = None) -> RemotingCommand:
    header = QueryConsumerOffsetRequestHeader(
        consumer_group="CG", topic=topic, queue_id=0, set_zero_if_not_found=zero
    )
    return await broker.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)


async def update(
    broker: BrokerHarness, topic: str, offset: int, queue_id: int = 0, group: str = "CG"
) -> RemotingCommand:
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset
    )
    return await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)


async def test_committed_offsets_are_answered(broker: BrokerHarness, topic: str) -> None:
    response = await update(broker, topic, 12)
    assert (response.code, response.ext_fields) == (0, {})
    assert (await query(broker, topic)).ext_fields == {"offset": "12"}


async def test_an_empty_or_unknown_queue_starts_at_0(broker: BrokerHarness, topic: str) -> None:
    for name in (topic, "NOPE"):
        response = await query(broker, name)
        assert (response.code, response.ext_fields) == (0, {"offset": "0"})


async def test_a_queue_with_its_first_message_in_memory_starts_at_0(
    broker: BrokerHarness, topic: str
) -> None:
    await broker.send(topic)
    assert (await query(broker, topic)).ext_fields == {"offset": "0"}


async def test_a_queue_with_its_first_message_on_disk(make_broker: MakeBroker) -> None:
    broker = make_broker(access_message_in_memory_max_ratio=0)
    topic = broker.topic()
    await broker.send(topic)
    response = await query(broker, topic)
    assert (response.code, response.remark) == (
        22,
        "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first",
    )


async def test_a_5_x_client_may_want_to_know(broker: BrokerHarness, topic: str) -> None:
    assert (await query(broker, topic, zero=False)).code == 22
    assert (await query(broker, topic, zero=True)).code == 0


@pytest.mark.parametrize(
    ("topic", "group", "queue_id", "offset"),
    [
        ("T", "CG", -1, 0),
        ("T", "CG", 0, -1),
        ("T", "CG", 0, -(2**63)),
        ("bad topic", "CG", 0, 0),
        ("T", "bad group", 0, 0),
        ("t" * 300, "CG", 0, 0),
        ("", "CG", 0, 0),
    ],
)
async def test_invalid_commits(
    broker: BrokerHarness, topic: str, group: str, queue_id: int, offset: int
) -> None:
    assert (await update(broker, topic, offset, queue_id, group)).code == 1
    assert len(broker.ctx.offsets) == 0


async def test_the_place_of_the_transaction_checks_is_the_brokers_own(
    broker: BrokerHarness,
) -> None:
    """A moved offset would make a restarted broker skip half messages."""
    broker.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 3)
    broker.ctx.offsets.commit("CG", TRANS_HALF_TOPIC, 0, 99)
    answers = [
        await update(broker, TRANS_HALF_TOPIC, 99, group=TRANSACTION_GROUP),
        await broker.ask(
            RequestCode.CLONE_GROUP_OFFSET,
            CloneGroupOffsetRequestHeader(
                src_group="CG", dest_group=TRANSACTION_GROUP, topic=TRANS_HALF_TOPIC, offline=True
            ),
        ),
        await broker.ask(
            RequestCode.DELETE_SUBSCRIPTIONGROUP,
            DeleteSubscriptionGroupRequestHeader(group_name=TRANSACTION_GROUP, clean_offset=True),
        ),
    ]
    assert [answer.code for answer in answers] == [ResponseCode.NO_PERMISSION] * 3
    assert broker.ctx.offsets.committed(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0) == 3


async def test_a_full_table(broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_offsets, "ENTRIES_MAX", 0)
    assert (await update(broker, "T", 1)).code == 1


async def test_both_ends_of_a_queue(broker: BrokerHarness, topic: str) -> None:
    for _ in range(3):
        await broker.send(topic)
    for name, queue_id, first, end in ((topic, 0, 0, 3), (topic, 99, 0, 0), ("NOPE", -1, 0, 0)):
        header = GetMaxOffsetRequestHeader(topic=name, queue_id=queue_id)
        response = await broker.ask(RequestCode.GET_MAX_OFFSET, header)
        assert (response.code, response.ext_fields) == (0, {"offset": str(end)})
        lowest = GetMinOffsetRequestHeader(topic=name, queue_id=queue_id)
        response = await broker.ask(RequestCode.GET_MIN_OFFSET, lowest)
        assert (response.code, response.ext_fields) == (0, {"offset": str(first)})


async def test_by_time(broker: BrokerHarness, topic: str) -> None:
    start = broker.now_ms
    for _ in range(3):
        await broker.send(topic)
        broker.now_ms += 1000
    for timestamp, offset in ((0, 0), (start, 0), (start + 1000, 1), (start + 10**9, 2)):
        header = SearchOffsetRequestHeader(topic=topic, queue_id=0, timestamp=timestamp)
        response = await broker.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        assert response.ext_fields == {"offset": str(offset)}, timestamp


async def test_the_earliest_store_time(broker: BrokerHarness, topic: str) -> None:
    header = GetEarliestMsgStoretimeRequestHeader(topic=topic, queue_id=0)
    response = await broker.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, header)
    assert response.ext_fields == {"timestamp": "-1"}
    await broker.send(topic)
    response = await broker.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, header)
    assert response.ext_fields == {"timestamp": str(broker.now_ms)}


async def test_all_offsets(broker: BrokerHarness) -> None:
    await update(broker, "T", 3)
    response = await broker.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    table = json.loads(response.body)
    assert table["offsetTable"] == {"T@CG": {"0": 3}}
    # A slave of RocketMQ 5 needs all three members.
    before = table["dataVersion"]
    assert set(before) == {"timestamp", "counter", "stateVersion"}
    await update(broker, "T", 4)
    response = await broker.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert json.loads(response.body)["dataVersion"] != before
    response = await broker.ask(RequestCode.GET_ALL_DELAY_OFFSET)
    assert response.body == b'{"offsetTable":{}}'


class TestClone:
    async def clone(self, broker: BrokerHarness, topic: str | None = None, **fields: Any) -> int:
        header = CloneGroupOffsetRequestHeader(
            src_group="CG", dest_group="New", topic=topic, **fields
        )
        return (await broker.ask(RequestCode.CLONE_GROUP_OFFSET, header)).code

    async def test_clone_one_topic_or_all_topics(self, broker: BrokerHarness, topic: str) -> None:
        broker.topic("U")
        offsets = broker.ctx.offsets
        for name, queue_id, offset in (("T", 0, 5), ("T", 3, 7), ("U", 0, 9), ("Gone", 0, 1)):
            offsets.commit("CG", name, queue_id, offset)
        offsets.commit("New", "T", 1, 4)
        assert await self.clone(broker, "T") == 0
        rows = sorted(row[1:] for row in offsets.rows() if row[0] == "New")
        assert rows == [("T", 0, 5), ("T", 3, 7)]
        assert await self.clone(broker) == 0
        assert sorted(offsets.topics_of("New")) == ["T", "U"]
        offsets.commit("CG", "T", 0, 6)
        assert offsets.committed("New", "T", 0) == 5
        assert len(offsets) == 5

    async def test_clone_skips_unsubscribed_topics(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.offsets.commit("CG", "T", 0, 5)
        data = ConsumerData(
            group_name="CG", subscription_data_set=[SubscriptionData(topic="Other")]
        )
        body = HeartbeatData(client_id="c", consumer_data_set=[data])
        await broker.ask(RequestCode.HEART_BEAT, body=body)
        assert await self.clone(broker, "T") == 0
        assert broker.ctx.offsets.committed("New", "T", 0) is None
        assert await self.clone(broker, "T", offline=True) == 0
        assert broker.ctx.offsets.committed("New", "T", 0) == 5

    async def test_nothing_to_clone(self, broker: BrokerHarness, topic: str) -> None:
        assert await self.clone(broker, "T") == 0
        assert await self.clone(broker) == 0
        assert len(broker.ctx.offsets) == 0

    async def test_a_full_table(
        self, broker: BrokerHarness, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broker.ctx.offsets.commit("CG", "T", 0, 5)
        monkeypatch.setattr("core_broker.state.consumer_offsets.ENTRIES_MAX", 1)
        assert await self.clone(broker, "T") == 1


class TestCorrection:
    """QUERY_CORRECTION_OFFSET (308)."""

    @staticmethod
    async def ask(broker: BrokerHarness, **fields: str) -> bytes:
        header = QueryCorrectionOffsetHeader(topic="T", **fields)
        response = await broker.ask(RequestCode.QUERY_CORRECTION_OFFSET, header)
        assert (response.code, response.remark) == (0, None)
        return response.body

    async def test_the_slowest_group_decides(self, broker: BrokerHarness, topic: str) -> None:
        assert await self.ask(broker) == b'{"correctionOffsets":{}}'
        await update(broker, topic, 9, queue_id=0, group="A")
        await update(broker, topic, 7, queue_id=0, group="B")
        await update(broker, topic, 3, queue_id=1, group="B")
        assert await self.ask(broker) == b'{"correctionOffsets":{0:7,1:3}}'
        assert await self.ask(broker, filter_groups="") == b'{"correctionOffsets":{0:7,1:3}}'

    async def test_groups_can_be_left_out_and_keep_their_offsets(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await update(broker, topic, 9, group="A")
        await update(broker, topic, 7, group="B")
        assert await self.ask(broker, filter_groups="X,B") == b'{"correctionOffsets":{0:9}}'
        assert broker.ctx.offsets.committed("B", topic, 0) == 7

    async def test_the_slowest_group_needs_no_correction(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await update(broker, topic, 9, group="A")
        await update(broker, topic, 7, group="B")
        last = await self.ask(broker, filter_groups="B", compare_group="B")
        assert last == b'{"correctionOffsets":{0:9223372036854775807}}'
        assert await self.ask(broker, compare_group="A") == b'{"correctionOffsets":{0:7}}'
