"""processors/send.py and admission.py: stored messages, answers, RocketMQ's remarks."""

import pytest

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.bodies import SubscriptionGroupConfig
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import SendMessageRequestHeader
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import send_header
from tests.unit.processors.conftest import MakeBroker

JAVA = "KEYS\x01K1\x02UNIQ_KEY\x01FD00\x02WAIT\x01true\x02TAGS\x01TagA"
FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def refusal(response: RemotingCommand) -> tuple[int, str | None]:
    assert response.ext_fields == REGION, "clients read these on refusals too"
    return response.code, response.remark


class TestOneMessage:
    async def test_the_answer_is_javas(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.send(topic, b"hi", JAVA, queue_id=1)
        assert response.code == 0
        assert response.ext_fields == {
            "msgId": "7F00000100002A9F0000000000000000",
            "queueId": "1",
            "queueOffset": "0",
            **REGION,
        }

    async def test_the_record_has_cluster_but_not_wait(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic, b"hi", JAVA, flag=7, reconsume_times=2)
        (stored,) = await broker.messages(topic)
        assert stored.properties == {
            "KEYS": "K1",
            "UNIQ_KEY": "FD00",
            "TAGS": "TagA",
            "CLUSTER": "DefaultCluster",
        }
        assert (stored.body, stored.flag, stored.reconsume_times) == (b"hi", 7, 2)
        assert stored.born_host == ("127.0.0.1", broker.client.peer_port)
        assert stored.store_host == ("127.0.0.1", 10911)

    async def test_a_broker_that_keeps_traces_adds_what_java_5_consumers_need(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(trace_topic_enable=True, region_id="R", trace_on=False)
        topic = broker.topic("T")
        await broker.send(topic, b"hi", "MSG_REGION\x01from elsewhere\x02")
        (stored,) = await broker.messages(topic)
        assert stored.properties == {
            "CLUSTER": "DefaultCluster",
            "MSG_REGION": "R",
            "TRACE_ON": "false",
        }

    async def test_code_10_with_long_names(self, broker: BrokerHarness, topic: str) -> None:
        header = SendMessageRequestHeader(
            producer_group="PG",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            properties=JAVA,
        )
        response = await broker.ask(RequestCode.SEND_MESSAGE, header, b"hi")
        assert response.code == 0
        assert len(await broker.messages(topic)) == 1

    async def test_a_cpp_batch_is_stored_as_a_record(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        fields = {
            "producerGroup": "PG", "topic": topic, "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4", "queueId": "0", "sysFlag": "0", "bornTimestamp": "1",
            "flag": "0", "properties": "WAIT\x01true\x02", "reconsumeTimes": "0", "unitMode": "0",
            "batch": "1",
        }  # fmt: skip
        body = encode_batch([Message(topic, b"1"), Message(topic, b"2")])
        response = await broker.ask(RequestCode.SEND_MESSAGE, fields, body)
        assert response.code == 0
        (stored,) = await broker.messages(topic)
        assert stored.body == body

    async def test_a_missing_body_is_stored(self, broker: BrokerHarness, topic: str) -> None:
        assert (await broker.send(topic, b"")).code == 0

    @pytest.mark.parametrize("asked", [-1, -7])
    async def test_a_negative_queue_means_any(
        self, broker: BrokerHarness, topic: str, asked: int
    ) -> None:
        response = await broker.send(topic, queue_id=asked)
        assert response.code == 0
        assert 0 <= int(response.ext_fields["queueId"]) < 4

    async def test_one_way_is_stored_without_an_answer(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        request = broker.request(RequestCode.SEND_MESSAGE_V2, send_header(topic), b"one-way")
        request.flag = 2
        assert broker.give(request) is None
        assert len(await broker.messages(topic)) == 1

    async def test_tags_of_a_multi_tag_topic_are_flagged(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        config = broker.ctx.topics.get(topic)
        assert config is not None
        config.topic_filter_type = "MULTI_TAG"
        await broker.send(topic)
        (stored,) = await broker.messages(topic)
        assert stored.sys_flag == 2

    async def test_sends_are_counted(self, broker: BrokerHarness, topic: str) -> None:
        for _ in range(3):
            await broker.send(topic, queue_id=2)
        totals = broker.ctx.statistics.totals()
        assert totals["TOPIC_PUT_NUMS"] == {topic: 3}
        assert totals["QUEUE_PUT_NUMS"] == {f"{topic}@2": 3}


class TestAutoCreate:
    async def test_from_the_template_saved_and_registered_first(
        self, broker: BrokerHarness
    ) -> None:
        response = await broker.send("New", default_topic_queue_nums=16)
        assert response.code == 0
        created = broker.ctx.topics.get("New")
        assert created is not None
        assert (created.write_queue_nums, created.perm) == (8, 6)
        assert broker.saver.saved == ["topics.json"]
        assert broker.registrar.topics == ["New"]
        assert len(await broker.messages("New")) == 1

    async def test_no_message_is_stored_when_the_table_cannot_be_saved(
        self, broker: BrokerHarness
    ) -> None:
        broker.saver.error = OSError("disk full")
        response = await broker.send("New")
        assert response.code == 1
        assert response.remark == "topics.json could not be written: disk full"
        assert await broker.messages("New") == []

    async def test_sends_are_answered_after_the_topic_is_on_disk(
        self, broker: BrokerHarness
    ) -> None:
        broker.saver.is_slow = True
        requests = [
            broker.request(310, send_header("New", queue_id=number), b"%d" % number)
            for number in range(3)
        ]
        assert [broker.give(request) for request in requests] == [None, None, None]
        assert broker.ctx.store.queue_range("New", 0) == (0, 0)
        assert (await broker.send(broker.topic("Known"))).code == 0
        broker.saver.finish()
        broker.requests.turn.end()
        assert [broker.client.answers[request.opaque].code for request in requests] == [0, 0, 0]
        assert (await broker.send("New", queue_id=3)).code == 0

    async def test_an_unsaved_topic_is_not_used_later(self, broker: BrokerHarness) -> None:
        broker.saver.error = OSError("disk full")
        assert (await broker.send("New")).code == 1
        assert (await broker.send("New")).code == 1
        broker.saver.error = None
        assert (await broker.send("New")).code == 0

    async def test_a_batch_creates_too(self, broker: BrokerHarness) -> None:
        body = encode_batch([Message("New", b"1")])
        assert (await broker.send("New", body, batch=True)).code == 0
        assert len(await broker.messages("New")) == 1

    async def test_not_from_an_unknown_template(self, broker: BrokerHarness) -> None:
        response = await broker.send("NOPE", default_topic="NOPE2")
        assert refusal(response) == (17, f"topic[NOPE] not exist, apply first please!{FAQ}")

    async def test_auto_creation_disabled_with_an_existing_template(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(auto_create_topic_enable=False)
        broker.topic("TBW102", perm=7)
        assert (await broker.send("New")).code == 17

    async def test_a_retry_topic_is_always_made(self, make_broker: MakeBroker) -> None:
        broker = make_broker(auto_create_topic_enable=False)
        response = await broker.send("%RETRY%G", max_reconsume_times=3)
        assert response.code == 0
        made = broker.ctx.topics.get("%RETRY%G")
        assert made is not None
        assert made.write_queue_nums == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "code", "words"),
        [
            ("SCHEDULE_TOPIC_XXXX", 16,
             "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
            ("RMQ_SYS_TRANS_HALF_TOPIC", 16, "is forbidden."),
            ("SELF_TEST_TOPIC", 16, "is forbidden."),
            ("OFFSET_MOVED_EVENT", 16, "is forbidden."),
            ("", 1, "The specified topic is blank."),
            ("a b", 1, "The specified topic contains illegal characters, allowing only "
             "^[%|a-zA-Z0-9_-]+$"),
            ("../../etc", 1, "illegal characters"),
            ("x" * 128, 1, "The specified topic is longer than topic max length"),
        ],
    )  # fmt: skip
    async def test_by_name(self, broker: BrokerHarness, name: str, code: int, words: str) -> None:
        answered, remark = refusal(await broker.send(name))
        assert answered == code
        assert words in (remark or "")

    @pytest.mark.parametrize("queue_id", [4, 99, 2**31 - 1])
    async def test_a_missing_queue(self, broker: BrokerHarness, topic: str, queue_id: int) -> None:
        code, remark = refusal(await broker.send(topic, queue_id=queue_id))
        assert code == 1
        assert remark == (
            f"request queueId[{queue_id}] is illegal, TopicConfig [topicName=T, readQueueNums=4, "
            "writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false] "
            f"Producer: {broker.client.peer}"
        )

    async def test_a_topic_without_queues(self, broker: BrokerHarness) -> None:
        broker.topic("Empty", queues=0)
        assert (await broker.send("Empty", queue_id=-1)).code == 1
        assert (await broker.send("Empty", queue_id=0)).code == 1

    async def test_order_topics_while_the_broker_may_not_write(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(broker_permission=4)
        broker.topic("Plain")
        ordered = broker.topic("Ordered")
        broker.ctx.topics.apply_order({ordered: "b:4"}, broker.now_ms)
        assert (await broker.send("Plain")).code == 0
        assert refusal(await broker.send(ordered)) == (
            16,
            "the broker[127.0.0.1] sending message is forbidden",
        )

    async def test_before_the_time_set_by_the_operator(self, make_broker: MakeBroker) -> None:
        broker = make_broker()
        late = make_broker(start_accept_send_request_time_stamp=broker.now_ms + 1)
        code, remark = refusal(await late.send(late.topic()))
        assert code == 1
        assert (remark or "").startswith("broker unable to service, until 2023-")
        late.now_ms += 1
        assert (await late.send("T")).code == 0

    async def test_while_stopping(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.is_accepting = False
        assert refusal(await broker.send(topic))[0] == 14

    async def test_too_large(self, make_broker: MakeBroker) -> None:
        broker = make_broker(max_message_size=1000)
        topic = broker.topic()
        assert (await broker.send(topic, b"x" * 1000)).code == 0
        code, remark = refusal(await broker.send(topic, b"x" * 1001))
        assert code == 13
        assert remark == (
            "the message is illegal, maybe msg body or properties length not matched. "
            "msg body length limit 1000B, msg properties length limit 32KB."
        )

    async def test_properties_too_long(self, make_broker: MakeBroker) -> None:
        broker = make_broker(mapped_file_size_commit_log=1024 * 1024)
        topic = broker.topic()
        overhead = len("K\x01") + len("\x02CLUSTER\x01DefaultCluster")
        assert (await broker.send(topic, b"", "K\x01" + "v" * (32767 - overhead))).code == 0
        assert (await broker.send(topic, b"", "K\x01" + "v" * (32768 - overhead))).code == 13

    async def test_a_malformed_delay_level(self, broker: BrokerHarness, topic: str) -> None:
        assert refusal(await broker.send(topic, b"", "DELAY\x01soon"))[0] == 13


class TestDelay:
    async def test_a_delayed_message_waits_in_the_queue_of_its_level(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        response = await broker.send(topic, b"later", "DELAY\x012\x02WAIT\x01true", queue_id=3)
        assert response.code == 0
        assert response.ext_fields["queueId"] == "3"
        (waiting,) = await broker.messages("SCHEDULE_TOPIC_XXXX", 1)
        assert waiting.properties == {
            "DELAY": "2",
            "WAIT": "true",
            "CLUSTER": "DefaultCluster",
            "REAL_TOPIC": topic,
            "REAL_QID": "3",
        }
        (unit,) = broker.ctx.store.queue_units("SCHEDULE_TOPIC_XXXX", 1, 0, 1)
        assert unit.tags_code == broker.now_ms + 5000

    async def test_a_level_above_the_table_is_capped(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic, b"", "DELAY\x0199")
        (waiting,) = await broker.messages("SCHEDULE_TOPIC_XXXX", 3)
        assert waiting.properties["DELAY"] == "4"

    @pytest.mark.parametrize("level", ["0", "-3"])
    async def test_no_level_is_no_delay(
        self, broker: BrokerHarness, topic: str, level: str
    ) -> None:
        await broker.send(topic, b"", f"DELAY\x01{level}")
        assert len(await broker.messages(topic)) == 1


class TestRetryTopics:
    @pytest.mark.parametrize(
        ("times", "limit", "destination"),
        [(0, 3, "%RETRY%G"), (2, 3, "%RETRY%G"), (3, 3, "%DLQ%G"), (0, 0, "%DLQ%G")],
    )
    async def test_a_message_without_retries_left_becomes_a_dead_letter(
        self, broker: BrokerHarness, times: int, limit: int, destination: str
    ) -> None:
        response = await broker.send(
            "%RETRY%G", b"", "DELAY\x012", reconsume_times=times, max_reconsume_times=limit
        )
        assert response.code == 0
        waiting = await broker.messages("SCHEDULE_TOPIC_XXXX", 1)
        buried = await broker.messages("%DLQ%G")
        if destination == "%DLQ%G":
            assert [len(waiting), len(buried)] == [0, 1], "a dead letter does not wait"
        else:
            assert [len(waiting), len(buried)] == [1, 0]

    async def test_an_old_client_gets_the_limit_of_the_group(self, broker: BrokerHarness) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="G", retry_max_times=1), 0)
        await broker.send("%RETRY%G", reconsume_times=1, max_reconsume_times=9, version=63)
        assert len(await broker.messages("%DLQ%G")) == 1

    async def test_the_dead_letter_topic_is_write_only(self, broker: BrokerHarness) -> None:
        await broker.send("%RETRY%G", reconsume_times=1, max_reconsume_times=1)
        made = broker.ctx.topics.get("%DLQ%G")
        assert made is not None
        assert (made.perm, made.read_queue_nums) == (2, 1)
        assert broker.ctx.statistics.totals()["DLQ_PUT_NUMS"] == {"G": 1}

    async def test_the_dlq_permission_is_a_setting(self, make_broker: MakeBroker) -> None:
        broker = make_broker(dlq_topic_perm=6)
        await broker.send("%RETRY%G", reconsume_times=1, max_reconsume_times=1)
        made = broker.ctx.topics.get("%DLQ%G")
        assert made is not None
        assert made.perm == 6

    async def test_a_group_that_cannot_be_created(self, make_broker: MakeBroker) -> None:
        broker = make_broker(auto_create_subscription_group=False)
        code, remark = refusal(await broker.send("%RETRY%G"))
        assert code == 26
        assert (remark or "").startswith("subscription group not exist, G ")
