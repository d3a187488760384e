"""processors/topics.py, groups.py, settings.py, statistics.py and cleaning.py."""

from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import PROBLEMS_SHOWN_MAX, SETTING_CHARS_SHOWN_MAX
from core_broker.remoting.bodies import (
    BrokerStatsData,
    ConsumerData,
    DataVersion,
    GroupList,
    HeartbeatData,
    MessageQueue,
    SubscriptionData,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicStatsTable,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.settings_update import UPDATE_BODY_BYTES_MAX
from core_broker.state.config_files import write_config
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def create(broker: BrokerHarness, name: str, **fields: Any) -> RemotingCommand:
    defaults: dict[str, Any] = {
        "default_topic": "TBW102",
        "read_queue_nums": 2,
        "write_queue_nums": 2,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
    }
    header = CreateTopicRequestHeader(topic=name, **defaults | fields)
    return await broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


class TestTopics:
    async def test_creating_is_answered_when_saved_and_announced(
        self, broker: BrokerHarness
    ) -> None:
        response = await create(broker, "T", perm=4, read_queue_nums=3, order=True)
        assert (response.code, response.remark) == (0, None)
        made = broker.ctx.topics.get("T")
        assert made is not None
        assert (made.perm, made.read_queue_nums, made.write_queue_nums) == (4, 3, 2)
        assert not made.order, "order comes from the name servers"
        assert broker.saver.saved == ["topics.json"]
        assert broker.registrar.topics == ["T"]

    async def test_a_change_keeps_the_order(self, broker: BrokerHarness) -> None:
        await create(broker, "T")
        broker.ctx.topics.apply_order({"T": "b:2"}, broker.now_ms)
        await create(broker, "T", write_queue_nums=5)
        changed = broker.ctx.topics.get("T")
        assert changed is not None
        assert (changed.order, changed.write_queue_nums) == (True, 5)

    async def test_an_unwritable_file_is_reported(self, broker: BrokerHarness) -> None:
        broker.saver.error = OSError("read-only file system")
        response = await create(broker, "T")
        assert (response.code, response.remark) == (
            1,
            "topics.json could not be written: read-only file system",
        )

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("TBW102", "The topic[TBW102] is conflict with system topic."),
            ("rmq_sys_x", "is conflict with system topic."),
            ("DefaultCluster", "is conflict with system topic."),
            ("b", "is conflict with system topic."),
            ("a b", "contains illegal characters"),
            ("", "The specified topic is blank."),
        ],
    )
    async def test_illegal_names(self, broker: BrokerHarness, name: str, words: str) -> None:
        for response in (
            await create(broker, name),
            await broker.ask(
                RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic=name)
            ),
        ):
            assert response.code == 1
            assert words in (response.remark or "")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("read_queue_nums", -1),
            ("write_queue_nums", 2**31 - 1),
            ("perm", -1),
            ("perm", 16),
            ("topic_filter_type", "null"),
        ],
    )
    async def test_illegal_values(self, broker: BrokerHarness, field: str, value: object) -> None:
        response = await create(broker, "T", **{field: value})
        assert response.code == 1
        assert (response.remark or "").endswith(f"= [{value}] value invalid")
        assert broker.ctx.topics.get("T") is None

    async def test_deleting_takes_queues_offsets_and_counters_along(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic)
        broker.ctx.offsets.commit("CG", topic, 0, 1)
        header = DeleteTopicRequestHeader(topic=topic)
        assert (await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).code == 0
        assert broker.ctx.topics.get(topic) is None
        assert broker.ctx.store.queue_range(topic, 0) == (0, 0)
        assert broker.ctx.offsets.committed("CG", topic, 0) is None
        assert "T" not in broker.ctx.statistics.totals().get("TOPIC_PUT_NUMS", {})
        assert (await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).code == 0

    async def test_lists(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
        wrapper = decode_body(TopicConfigSerializeWrapper, response.body)
        assert wrapper.topic_config_table[topic] == broker.ctx.topics.get(topic)
        assert wrapper.data_version == broker.ctx.topics.version
        response = await broker.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        names = decode_body(TopicList, response.body).topic_list
        assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "b"} <= set(names)
        assert topic not in names

    async def test_stats(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, queue_id=1)
        header = GetTopicStatsInfoRequestHeader(topic=topic)
        response = await broker.ask(RequestCode.GET_TOPIC_STATS_INFO, header)
        object_key = b'"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:'
        assert object_key in response.body
        table = decode_body(TopicStatsTable, response.body).offset_table
        assert len(table) == 4
        used = table[MessageQueue(topic, "b", 1)]
        assert (used.min_offset, used.max_offset) == (0, 1)
        assert used.last_update_timestamp == broker.now_ms
        assert table[MessageQueue(topic, "b", 0)].last_update_timestamp == 0
        header = GetTopicStatsInfoRequestHeader(topic="NOPE")
        response = await broker.ask(RequestCode.GET_TOPIC_STATS_INFO, header)
        assert (response.code, response.remark) == (17, "topic[NOPE] not exist")

    async def test_groups_of_a_topic(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.offsets.commit("Offline", topic, 0, 1)
        consumer = ConsumerData(
            group_name="Online", subscription_data_set=[SubscriptionData(topic=topic)]
        )
        beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
        await broker.ask(RequestCode.HEART_BEAT, body=beat)
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        response = await broker.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        assert decode_body(GroupList, response.body).group_list == ["Offline", "Online"]


class TestGroups:
    async def test_create_list_delete(self, broker: BrokerHarness) -> None:
        group = SubscriptionGroupConfig(group_name="GX", retry_max_times=3)
        response = await broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
        assert response.code == 0
        assert broker.saver.saved == ["subscriptionGroup.json"]
        response = await broker.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        wrapper = decode_body(SubscriptionGroupWrapper, response.body)
        assert wrapper.subscription_group_table["GX"] == group
        response = await broker.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "GX"})
        assert response.code == 0
        assert broker.ctx.groups.get("GX") is None

    @pytest.mark.parametrize(
        ("fields", "kept"),
        [({}, True), ({"removeOffset": "true"}, False), ({"cleanOffset": "true"}, False)],
    )
    async def test_offsets_go_when_either_line_of_clients_asks(
        self, broker: BrokerHarness, fields: dict[str, str], kept: bool
    ) -> None:
        broker.ctx.offsets.commit("GX", "T", 0, 5)
        await broker.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "GX", **fields})
        assert (broker.ctx.offsets.committed("GX", "T", 0) is not None) == kept

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"null",
            b"[]",
            b"{}",
            b'{"groupName":""}',
            b'{"groupName":"a b"}',
            b'{"groupName":"G","retryQueueNums":2000000000}',
            b"\xff\xfe",
        ],
    )
    async def test_illegal_groups(self, broker: BrokerHarness, body: bytes) -> None:
        before = len(broker.ctx.groups)
        response = await broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
        assert response.code == 1
        assert len(broker.ctx.groups) == before


class TestSettings:
    async def test_show(self, broker: BrokerHarness) -> None:
        response = await broker.ask(RequestCode.GET_BROKER_CONFIG)
        lines = response.body.decode().splitlines()
        assert "brokerName=b" in lines
        assert "flushDiskType=ASYNC_FLUSH" in lines
        version = decode_body(DataVersion, response.ext_fields["version"].encode())
        assert version == DataVersion(broker.now_ms, 0)

    async def test_a_change_is_in_force_everywhere_and_written(self, broker: BrokerHarness) -> None:
        response = await broker.ask(
            RequestCode.UPDATE_BROKER_CONFIG, body=b"maxMessageSize=10\nlongPollingEnable=false\n"
        )
        assert response.code == 0
        assert broker.ctx.config.max_message_size == 10
        assert broker.ctx.store.config.max_message_size == 10
        assert (await broker.send(broker.topic(), b"x" * 11)).code == 13
        response = await broker.ask(RequestCode.GET_BROKER_CONFIG)
        version = decode_body(DataVersion, response.ext_fields["version"].encode())
        assert version.counter == 1

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (b"storePathRootDir=/etc", 1),
            (b"brokerName=x", 1),
            (b"listenPort=1", 1),
            (b"nonsense=1", 1),
            (b"maxMessageSize=abc", 1),
            (b"maxMessageSize=-1", 1),
            (b"configBlackList=x", 16),
            (b"brokerConfigPath=/etc/passwd", 16),
            (b"longPollingEnable=false\nbrokerName=x", 1),
        ],
    )
    async def test_only_updatable_keys_all_or_none(
        self, broker: BrokerHarness, text: bytes, code: int
    ) -> None:
        before = broker.ctx.config
        response = await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text)
        assert response.code == code
        assert broker.ctx.config == before

    async def test_simultaneous_changes_share_few_writes(
        self, broker: BrokerHarness, tmp_path: Path
    ) -> None:
        written: list[bytes] = []
        file = broker.ctx.settings_file = SavedFile(
            tmp_path / "broker.conf",
            broker.ctx.settings_text,
            lambda _, parts: written.extend(parts),
        )
        requests = [
            broker.request(RequestCode.UPDATE_BROKER_CONFIG, body=b"maxMessageSize=%d" % size)
            for size in range(1, 601)
        ]
        for request in requests:
            assert broker.give(request) is None
        await file.drain()
        assert {broker.client.answers[request.opaque].code for request in requests} == {0}
        assert len(written) <= 2
        assert b"maxMessageSize=600\n" in written[-1]

    async def test_an_unwritable_file_is_reported(
        self, broker: BrokerHarness, tmp_path: Path
    ) -> None:
        (tmp_path / "folder").touch()
        file = broker.ctx.settings_file = SavedFile(
            tmp_path / "folder" / "broker.conf", lambda: b"", write_config
        )
        request = broker.request(RequestCode.UPDATE_BROKER_CONFIG, body=b"maxMessageSize=10")
        assert broker.give(request) is None
        await file.drain()
        answer = broker.client.answers[request.opaque]
        assert answer.code == 1
        assert f"changed in memory only: {file.path} cannot be written" in (answer.remark or "")

    async def test_sizes_are_limited(self, broker: BrokerHarness) -> None:
        code = RequestCode.UPDATE_BROKER_CONFIG
        body = b"maxMessageSize=10\n".ljust(UPDATE_BODY_BYTES_MAX + 1, b"#")
        answer = await broker.ask(code, body=body)
        assert answer.code == 1
        assert f"the limit of an update is {UPDATE_BODY_BYTES_MAX}" in (answer.remark or "")
        assert broker.ctx.config.max_message_size != 10
        assert (await broker.ask(code, body=body[:-1])).code == 0
        answer = await broker.ask(code, body=b"maxMessageSize=" + b"9" * 10_000)
        assert answer.code == 1
        assert len(answer.remark or "") < 2 * SETTING_CHARS_SHOWN_MAX
        answer = await broker.ask(code, body=b"".join(b"u%d=1\n" % n for n in range(1_000)))
        assert (answer.remark or "").count("\n") == PROBLEMS_SHOWN_MAX
        assert (answer.remark or "").endswith(f"\nand {1_000 - PROBLEMS_SHOWN_MAX} more problems")

    async def test_garbage_is_harmless(self, broker: BrokerHarness) -> None:
        for body in (b"", b"\xff\x00\xfe", b"=\n=\n", b"\\u12"):
            assert (await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)).code in {0, 1}

    async def test_name_servers_hear_of_a_new_permission(self, broker: BrokerHarness) -> None:
        before = broker.ctx.topics.version.counter
        await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4")
        assert broker.registrar.all == 1
        assert broker.ctx.topics.version.counter == before + 1
        await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"namesrvAddr=127.0.0.1:9876")
        assert broker.registrar.all == 2
        await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"longPollingEnable=false")
        assert broker.registrar.all == 2


class TestStatistics:
    async def test_view(self, broker: BrokerHarness, topic: str) -> None:
        header = ViewBrokerStatsDataRequestHeader(stats_name="TOPIC_PUT_NUMS", stats_key=topic)
        response = await broker.ask(RequestCode.VIEW_BROKER_STATS_DATA, header)
        assert (response.code, response.remark) == (1, "The stats <TOPIC_PUT_NUMS> <T> not exist")
        broker.ctx.statistics.puts_of(topic)
        broker.ctx.statistics.sample(0)
        await broker.send(topic)
        broker.ctx.statistics.sample(10_000)
        response = await broker.ask(RequestCode.VIEW_BROKER_STATS_DATA, header)
        assert decode_body(BrokerStatsData, response.body).stats_minute.sum == 1


class TestCleaning:
    async def test_queues_of_deleted_topics(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic)
        await broker.send(broker.topic("Kept"))
        broker.ctx.topics.remove(topic, broker.now_ms)
        assert (await broker.ask(RequestCode.CLEAN_UNUSED_TOPIC)).code == 0
        assert broker.ctx.store.topics_on_disk() == ["Kept"]

    async def test_on_demand(self, make_broker: MakeBroker) -> None:
        broker = make_broker()
        await broker.send(broker.topic())
        for code in (RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, RequestCode.DELETE_EXPIRED_COMMITLOG):
            assert (await broker.ask(code)).code == 0
        assert len(await broker.messages("T")) == 1
