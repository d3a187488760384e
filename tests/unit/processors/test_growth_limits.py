"""Limits of topics and groups created on first use: refusals name the setting."""

from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
    SubscriptionGroupConfig,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import send_header
from tests.unit.processors.conftest import MakeBroker


def consumer(group: str) -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[SubscriptionData(topic="T", sub_string="*")],
    )


async def beat(broker: BrokerHarness, *groups: str) -> RemotingCommand:
    body = HeartbeatData(client_id="c", consumer_data_set=[consumer(each) for each in groups])
    return await broker.ask(RequestCode.HEART_BEAT, body=body)


async def update(broker: BrokerHarness, line: str) -> None:
    answer = await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=line.encode())
    assert answer.code == 0, answer.remark


class TestTopics:
    async def test_no_more_topics_than_the_setting(self, make_broker: MakeBroker) -> None:
        broker = make_broker()
        count = broker.ctx.topics.limited_count
        await update(broker, f"maxAutoCreateTopicNum={count + 1}")
        assert (await broker.send("First")).code == 0
        refused = await broker.send("Second")
        assert (refused.code, refused.remark) == (
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[Second] does not exist, and the broker has {count + 1} topics; "
            f"maxAutoCreateTopicNum is {count + 1}",
        )
        assert broker.ctx.topics.get("Second") is None
        assert (await broker.send("First")).code == 0
        await update(broker, f"maxAutoCreateTopicNum={count + 2}")
        assert (await broker.send("Second")).code == 0

    async def test_the_limit_holds_for_every_template(self, make_broker: MakeBroker) -> None:
        """A stored topic with the inherit bit is a template, also without automatic creation."""
        broker = make_broker(auto_create_topic_enable=False)
        template = broker.topic("Template", perm=7)
        await update(broker, f"maxAutoCreateTopicNum={broker.ctx.topics.limited_count + 1}")
        assert (await broker.send("First", default_topic=template)).code == 0
        refused = await broker.send("Second", default_topic=template)
        assert refused.code == ResponseCode.TOPIC_NOT_EXIST
        assert "maxAutoCreateTopicNum is" in (refused.remark or "")
        unknown = await broker.send("Second")
        assert (unknown.remark or "").startswith("topic[Second] not exist")

    async def test_topics_of_failed_messages_need_a_group_only(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(max_auto_create_topic_num=0)
        assert (await beat(broker, "G")).code == 0
        assert broker.ctx.topics.get("%RETRY%G") is not None
        assert (await broker.send("%DLQ%G")).code == 0
        limit = len(broker.ctx.groups)
        await update(broker, f"maxAutoCreateSubscriptionGroupNum={limit}")
        for prefix in ("%RETRY%", "%DLQ%"):
            refused = await broker.send(f"{prefix}Forged")
            assert refused.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            assert f"maxAutoCreateSubscriptionGroupNum is {limit}" in (refused.remark or "")
            assert broker.ctx.topics.get(f"{prefix}Forged") is None


class TestGroups:
    async def test_a_heartbeat_registers_the_groups_that_exist(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker()
        await beat(broker, "Old")
        limit = len(broker.ctx.groups)
        await update(broker, f"maxAutoCreateSubscriptionGroupNum={limit}")
        refused = await beat(broker, "New", "Old")
        assert (refused.code, refused.remark) == (
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [New] does not exist, and the broker has {limit} groups; "
            f"maxAutoCreateSubscriptionGroupNum is {limit}",
        )
        assert broker.ctx.consumers.groups == ["Old"]
        assert broker.ctx.topics.get("%RETRY%New") is None
        await update(broker, f"maxAutoCreateSubscriptionGroupNum={limit + 1}")
        assert (await beat(broker, "New", "Old")).code == 0
        assert broker.ctx.consumers.groups == ["Old", "New"]

    async def test_pulls_are_refused_and_administrators_create(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(max_auto_create_subscription_group_num=0)
        topic = broker.topic()
        refused = await broker.pull(topic, consumer_group="New")
        assert refused.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert "maxAutoCreateSubscriptionGroupNum is 0" in (refused.remark or "")
        group = SubscriptionGroupConfig(group_name="New")
        request = broker.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
        broker.give(request)
        assert (await beat(broker, "New")).code == 0
        assert broker.ctx.groups.get("New") == group


class TestSaves:
    async def test_saved_topics_open_the_fast_path_again(self, broker: BrokerHarness) -> None:
        """Only topics of a complete save count as saved; a failed save leaves all topics."""
        broker.saver.is_slow = True
        broker.give(broker.request(RequestCode.SEND_MESSAGE_V2, send_header("A")))
        assert list(broker.ctx.unsaved_topics) == ["A"]
        broker.saver.error = OSError(28, "No space left on device")
        broker.saver.finish()
        assert list(broker.ctx.unsaved_topics) == ["A"]
        broker.saver.error = None
        broker.ctx.retry_saves()
        broker.give(broker.request(RequestCode.SEND_MESSAGE_V2, send_header("B")))
        assert list(broker.ctx.unsaved_topics) == ["A", "B"]
        broker.saver.finish()
        assert not broker.ctx.unsaved_topics
