"""Codes of administration tools of 5.x: 18, 222, 225, 343, 345, 351, 352, 907, 908, 1007."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core_broker.message.topics import TRANSACTION_GROUP
from core_broker.processors.admission import LIST_MAX
from core_broker.remoting.bodies import (
    HAClientRuntimeInfo,
    MessageQueue,
    ResetOffsetBody,
    decode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ResetOffsetRequestHeader
from core_broker.remoting.versions import VERSION_5
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.test_relays import asked_of, online

TOPIC = {"readQueueNums": 3, "writeQueueNums": 2, "perm": 4, "topicFilterType": "SINGLE_TAG"}


async def get(broker: BrokerHarness, code: int, **fields: str) -> Any:
    answer = await broker.ask(code, fields)
    assert answer.code == 0, answer.remark
    return json.loads(answer.body)


class TestLists:
    async def update(self, broker: BrokerHarness, *topics: dict[str, object]) -> RemotingCommand:
        body = {"topicConfigList": list(topics)}
        return await broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)

    async def test_topics_are_created_and_changed(self, broker: BrokerHarness) -> None:
        broker.topic("Old")
        # Java sends members of 5.x, too. An unchanged topic in the list does not end the list.
        answer = await self.update(
            broker,
            {"topicName": "Old", **TOPIC, "attributes": {"+message.type": "FIFO"}},
            {"topicName": "Old", **TOPIC},
            {"topicName": "New", **TOPIC, "order": True},
        )
        assert answer.code == 0
        for name in ("Old", "New"):
            topic = broker.ctx.topics.get(name)
            assert topic is not None
            assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 2, 4)
            assert not topic.order, "order comes from the name servers"
        assert broker.saver.saved == ["topics.json"]
        assert broker.registrar.topics == ["Old", "Old", "New"]

    @pytest.mark.parametrize(
        "bad",
        [
            {"topicName": "a b"},
            {"topicName": "TBW102"},
            {"topicName": "X", "perm": 99},
            {"topicName": "X", "readQueueNums": -1},
            {"topicName": "X", "topicFilterType": "?"},
            {"topicName": None},
        ],
    )
    async def test_a_bad_topic_refuses_the_whole_list(
        self, broker: BrokerHarness, bad: dict[str, object]
    ) -> None:
        answer = await self.update(broker, {"topicName": "Fine", **TOPIC}, bad)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert broker.ctx.topics.get("Fine") is None
        assert broker.saver.saved == []

    async def test_groups_are_created_and_changed(self, broker: BrokerHarness) -> None:
        groups = [
            {"groupName": "A", "retryMaxTimes": 3},
            {"groupName": "B", "consumeEnable": False},
        ]
        answer = await broker.ask(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body={"groupConfigList": groups}
        )
        assert answer.code == 0
        assert broker.saver.saved == ["subscriptionGroup.json"]
        got = [
            await get(broker, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=name)
            for name in ("A", "B")
        ]
        assert [(each["retryMaxTimes"], each["consumeEnable"]) for each in got] == [
            (3, True),
            (16, False),
        ]

    async def test_a_bad_group_refuses_the_whole_list(self, broker: BrokerHarness) -> None:
        for bad in ({"groupName": "a b"}, {"groupName": "X", "retryQueueNums": 1 << 30}):
            answer = await broker.ask(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
                body={"groupConfigList": [{"groupName": "Fine"}, bad]},
            )
            assert answer.code == ResponseCode.SYSTEM_ERROR
        assert broker.ctx.groups.get("Fine") is None

    @pytest.mark.parametrize(
        ("code", "member", "name", "items"),
        [
            (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, "topicConfigList", "topicName", "topics"),
            (
                *(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, "groupConfigList"),
                *("groupName", "groups"),
            ),
        ],
    )
    async def test_a_list_is_bounded(
        self, broker: BrokerHarness, code: int, member: str, name: str, items: str
    ) -> None:
        body = {member: [{name: f"n{number}"} for number in range(LIST_MAX + 1)]}
        answer = await broker.ask(code, body=body)
        assert (answer.code, answer.remark) == (
            ResponseCode.INVALID_PARAMETER,
            f"the list has 1001 {items}, a request may have 1000; send the list in parts",
        )
        assert broker.saver.saved == []
        body[member].pop()
        assert (await broker.ask(code, body=body)).code == 0


class TestQuestions:
    async def test_the_configuration_of_a_topic(self, broker: BrokerHarness) -> None:
        broker.topic("T", queues=2)
        answer = await broker.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T", "lo": "true"})
        assert answer.body == (
            b'{"attributes":{},"order":false,"perm":6,"readQueueNums":2,'
            b'"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":2}'
        )

    async def test_what_does_not_exist(self, broker: BrokerHarness) -> None:
        answer = await broker.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "N"})
        assert (answer.code, answer.remark) == (17, "No topic in this broker. topic: N")
        answer = await broker.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "N"})
        assert (answer.code, answer.remark) == (26, "No group in this broker. group: N")

    async def test_the_topics_of_a_group(self, broker: BrokerHarness) -> None:
        for name in ("T2", "T1"):
            broker.ctx.offsets.commit("CG", name, 0, 5)
        assert await get(broker, RequestCode.QUERY_TOPICS_BY_CONSUMER, group="CG") == {
            "brokerAddr": "127.0.0.1:10911",
            "topicList": ["T1", "T2"],
        }
        nobody = await get(broker, RequestCode.QUERY_TOPICS_BY_CONSUMER, group="N")
        assert nobody["topicList"] == []

    async def test_the_subscription_of_a_group(self, broker: BrokerHarness) -> None:
        code = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER
        unknown = {"group": "CG", "topic": "T"}
        assert await get(broker, code, group="CG", topic="T") == unknown
        await online(broker)
        found = await get(broker, code, group="CG", topic="T")
        assert found["subscriptionData"]["subString"] == "*"

    async def test_a_master_without_slaves(self, broker: BrokerHarness) -> None:
        await broker.send(broker.topic("T"))
        status = await get(broker, RequestCode.GET_BROKER_HA_STATUS)
        assert (status["master"], status["haConnectionInfo"], status["inSyncSlaveNums"]) == (
            *(True, []),
            0,
        )
        assert status["masterCommitLogMaxOffset"] == broker.ctx.store.max_offset_physical > 0


class TestReplication:
    """908 and 1007."""

    async def test_the_epochs_of_a_log(self, broker: BrokerHarness) -> None:
        refused = await broker.ask(RequestCode.GET_BROKER_EPOCH_CACHE)
        assert (refused.code, refused.remark) == (
            ResponseCode.SYSTEM_ERROR,
            "this request only for controllerMode ",
        )
        broker.ctx.reconfigure(replace(broker.ctx.config, enable_controller_mode=True))
        broker.ctx.store.epochs.begin(1, 0)
        broker.ctx.store.epochs.begin(4, 128)
        await broker.send(broker.topic("T"))
        found = await get(broker, RequestCode.GET_BROKER_EPOCH_CACHE)
        assert found == {
            "clusterName": "DefaultCluster",
            "brokerName": broker.ctx.config.broker_name,
            "brokerId": 0,
            "epochList": [
                {"epoch": 1, "startOffset": 0, "endOffset": 128},
                {"epoch": 4, "startOffset": 128, "endOffset": 2**63 - 1},
            ],
            "maxOffset": broker.ctx.store.max_offset_physical,
        }

    @pytest.mark.parametrize(("role", "shown"), [("SLAVE", 4096), ("ASYNC_MASTER", 0)])
    async def test_the_flush_offset_of_the_master(
        self, make_broker: Callable[..., BrokerHarness], role: str, shown: int
    ) -> None:
        broker = make_broker(broker_role=role, broker_id=int(role == "SLAVE"))
        broker.ctx.ha_client_info = HAClientRuntimeInfo
        fields = {"masterFlushOffset": "4096"}
        answer = await broker.ask(RequestCode.RESET_MASTER_FLUSH_OFFSET, fields)
        assert answer.code == ResponseCode.SUCCESS
        status = await get(broker, RequestCode.GET_BROKER_HA_STATUS)
        assert status["haClientRuntimeInfo"]["masterFlushOffset"] == shown


class TestReset:
    """222 from a client of 5.x: the broker commits, and the group may be offline."""

    async def reset(self, broker: BrokerHarness, **fields: Any) -> RemotingCommand:
        header = ResetOffsetRequestHeader(
            **{"topic": "T", "group": "CG", "timestamp": -1, "is_force": True, "offset": -1}
            | fields
        )
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        return await broker.ask(code, header, version=VERSION_5)

    async def ready(self, broker: BrokerHarness) -> None:
        broker.topic("T", queues=2)
        for _ in range(3):
            await broker.send("T")
        broker.ctx.offsets.commit("CG", "T", 0, 1)

    def committed(self, broker: BrokerHarness) -> list[int | None]:
        return [broker.ctx.offsets.committed("CG", "T", each) for each in (0, 1)]

    async def test_an_idle_group(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        answer = await self.reset(broker)
        assert answer.code == 0, answer.remark
        table = decode_body(ResetOffsetBody, answer.body).offset_table
        assert table == {MessageQueue("T", "b", 0): 3, MessageQueue("T", "b", 1): 0}
        assert self.committed(broker) == [3, 0]
        await self.reset(broker, timestamp=0)
        assert self.committed(broker) == [0, 0]

    async def test_a_group_that_never_consumed(self, broker: BrokerHarness) -> None:
        broker.topic("T", queues=2)
        broker.ctx.groups.obtain("CG", may_create=True, now_ms=0)
        assert (await self.reset(broker)).code == 0
        assert self.committed(broker) == [0, 0]

    async def test_members_are_notified(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        peer = await online(broker)
        answer = await self.reset(broker)
        (order,) = asked_of(peer)
        assert order.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        assert order.body == answer.body
        assert self.committed(broker) == [3, 0]

    async def test_without_force_no_message_is_skipped(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        await self.reset(broker, is_force=False)
        assert self.committed(broker) == [1, 0]

    async def test_one_queue_to_an_offset(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        answer = await self.reset(broker, queue_id=0, offset=2, timestamp=0, is_force=False)
        table = decode_body(ResetOffsetBody, answer.body).offset_table
        assert table == {MessageQueue("T", "b", 0): 2}
        assert self.committed(broker) == [2, None]

    async def test_one_queue_to_a_time(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        assert (await self.reset(broker, queue_id=0)).code == 0
        assert self.committed(broker) == [3, None]

    @pytest.mark.parametrize(
        ("fields", "code", "remark"),
        [
            ({"topic": "N"}, 17, "Topic N does not exist"),
            ({"group": "N"}, 26, "Group N does not exist"),
            ({"group": TRANSACTION_GROUP}, 16, "belong to the broker itself"),
            ({"queue_id": 0, "offset": 4}, 1, "offset 4 is not in queue 0 of T, which has 0 to 3"),
            ({"queue_id": 0, "offset": -2}, 1, "offset -2 is not in queue 0"),
            ({"queue_id": 2, "offset": 0}, 1, "offset 0 is not in queue 2"),
            ({"queue_id": 2**31 - 1}, 1, "is not in queue 2147483647"),
        ],
    )
    async def test_refusals(
        self, broker: BrokerHarness, fields: dict[str, Any], code: int, remark: str
    ) -> None:
        await self.ready(broker)
        answer = await self.reset(broker, **fields)
        assert answer.code == code
        assert remark in (answer.remark or "")
        assert self.committed(broker) == [1, None]

    async def test_a_topic_without_read_queues(self, broker: BrokerHarness) -> None:
        await self.ready(broker)
        broker.topic("T", queues=0)
        answer = await self.reset(broker)
        assert (answer.code, answer.remark) == (1, "No queues to reset.")
