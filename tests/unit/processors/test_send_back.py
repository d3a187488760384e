"""processors/send_back.py: failed messages return after a delay, and end as dead letters."""

import pytest

from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def send_back(
    broker: BrokerHarness,
    offset: int,
    *,
    delay_level: int = 0,
    limit: int | None = 16,
    version: int = 409,
) -> RemotingCommand:
    header = ConsumerSendMsgBackRequestHeader(
        offset=offset,
        group="CG",
        delay_level=delay_level,
        origin_msg_id="x",
        origin_topic="T",
        max_reconsume_times=limit,
    )
    return await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header, version=version)


async def stored(broker: BrokerHarness, topic: str = "T") -> MessageExt:
    await broker.send(topic, b"payload", "KEYS\x01k\x02TAGS\x01A\x02UNIQ_KEY\x01U")
    return (await broker.messages(topic))[-1]


def deliver(broker: BrokerHarness) -> None:
    """Let the longest delay pass and deliver everything."""
    broker.now_ms += 30_000
    broker.delays.deliver_due()


async def test_a_first_failure_waits_on_level_three(broker: BrokerHarness, topic: str) -> None:
    failed = await stored(broker)
    response = await send_back(broker, failed.offset_physical)
    assert (response.code, response.remark) == (0, None)
    (waiting,) = await broker.messages("SCHEDULE_TOPIC_XXXX", 2)
    assert waiting.body == b"payload"
    assert waiting.reconsume_times == 1
    assert waiting.properties == {
        "KEYS": "k",
        "TAGS": "A",
        "UNIQ_KEY": "U",
        "CLUSTER": "DefaultCluster",
        "RETRY_TOPIC": topic,
        "ORIGIN_MESSAGE_ID": failed.offset_msg_id,
        "WAIT": "false",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%CG",
        "REAL_QID": "0",
    }
    assert (waiting.born_host, waiting.born_timestamp) == (failed.born_host, failed.born_timestamp)
    assert broker.ctx.topics.get("%RETRY%CG") is not None
    assert broker.ctx.statistics.totals()["SNDBCK_PUT_NUMS"] == {"T@CG": 1}


async def test_each_failure_waits_longer_and_the_last_is_buried(
    broker: BrokerHarness, topic: str
) -> None:
    failed = await stored(broker)
    first_id = failed.offset_msg_id
    for times in range(3):
        assert (await send_back(broker, failed.offset_physical, limit=3)).code == 0
        deliver(broker)
        failed = (await broker.messages("%RETRY%CG"))[-1]
        assert failed.reconsume_times == times + 1
    assert (await send_back(broker, failed.offset_physical, limit=3)).code == 0
    (buried,) = await broker.messages("%DLQ%CG")
    assert buried.reconsume_times == 4
    assert buried.properties["RETRY_TOPIC"] == topic
    assert buried.properties["ORIGIN_MESSAGE_ID"] == first_id
    assert buried.properties["DELAY"] == "0"
    dlq = broker.ctx.topics.get("%DLQ%CG")
    assert dlq is not None
    assert (dlq.perm, dlq.write_queue_nums) == (2, 1)
    assert broker.ctx.statistics.totals()["DLQ_PUT_NUMS"] == {"CG": 1}


@pytest.mark.parametrize(("asked", "queue"), [(1, 0), (2, 1), (99, 3)])
async def test_a_consumer_may_choose_the_delay(
    broker: BrokerHarness, topic: str, asked: int, queue: int
) -> None:
    failed = await stored(broker)
    await send_back(broker, failed.offset_physical, delay_level=asked)
    assert len(await broker.messages("SCHEDULE_TOPIC_XXXX", queue)) == 1


async def test_a_consumer_may_give_up_at_once(broker: BrokerHarness, topic: str) -> None:
    failed = await stored(broker)
    await send_back(broker, failed.offset_physical, delay_level=-1)
    assert len(await broker.messages("%DLQ%CG")) == 1


async def test_a_dead_letter_waits_for_its_saved_topic(broker: BrokerHarness, topic: str) -> None:
    failed = await stored(broker)
    assert (await send_back(broker, failed.offset_physical)).code == 0
    broker.saver.is_slow = True
    header = ConsumerSendMsgBackRequestHeader(
        offset=failed.offset_physical, group="CG", delay_level=-1
    )
    request = broker.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
    assert broker.give(request) is None
    assert await broker.messages("%DLQ%CG") == []
    broker.saver.finish()
    broker.requests.turn.end()
    assert broker.client.answers[request.opaque].code == 0
    assert len(await broker.messages("%DLQ%CG")) == 1


async def test_an_old_client_gets_the_limit_of_the_group(broker: BrokerHarness, topic: str) -> None:
    broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG", retry_max_times=0), 0)
    failed = await stored(broker)
    await send_back(broker, failed.offset_physical, version=63)
    assert len(await broker.messages("%DLQ%CG")) == 1


async def test_a_group_without_retry_queues_drops_the_message(
    broker: BrokerHarness, topic: str
) -> None:
    broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG", retry_queue_nums=0), 0)
    failed = await stored(broker)
    assert (await send_back(broker, failed.offset_physical)).code == 0
    assert await broker.messages("SCHEDULE_TOPIC_XXXX", 2) == []


@pytest.mark.parametrize("offset", [-1, 1, 77, 10**12, -(2**63)])
async def test_an_offset_where_no_record_begins(
    broker: BrokerHarness, topic: str, offset: int
) -> None:
    await stored(broker)
    response = await send_back(broker, offset)
    assert response.code == 1
    assert (response.remark or "").startswith("look message by offset failed")


async def test_refusals(make_broker: MakeBroker) -> None:
    read_only = make_broker(broker_permission=4)
    assert (await send_back(read_only, 0)).code == 16

    no_groups = make_broker(auto_create_subscription_group=False)
    assert (await send_back(no_groups, 0)).code == 26

    broker = make_broker()
    broker.ctx.topics.put(TopicConfig(topic_name="%RETRY%CG", perm=4), 0)
    response = await send_back(broker, 0)
    assert (response.code, response.remark) == (
        16,
        "the topic[%RETRY%CG] sending message is forbidden",
    )
    broker.ctx.is_accepting = False
    assert (await send_back(broker, 0)).code == 14
