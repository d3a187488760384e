"""Descriptions in docs/settings.md, which the console shows, beside the effect of the settings."""

from console.services.clusters.setting_docs import meanings
from core_broker.message.record import decode_records
from core_broker.remoting.bodies import TopicConfig
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers import QueryMessageRequestHeader
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


async def test_max_message_size_limits_the_body_without_the_properties(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(max_message_size=1_000)
    broker.topic("T")
    long = "a\x01" + "v" * 5_000
    assert (await broker.send("T", b"x" * 1_000, long)).code == ResponseCode.SUCCESS
    assert (await broker.send("T", b"x" * 1_001)).code == ResponseCode.MESSAGE_ILLEGAL
    meaning = meanings()["maxMessageSize"]
    assert "a message's body" in meaning
    assert "properties together" not in meaning


async def test_default_topic_queue_nums_is_the_queue_number_of_a_new_template(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(default_topic_queue_nums=2)
    await broker.send("First")
    assert topic(broker, "First").write_queue_nums == 2
    response = await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"defaultTopicQueueNums=1\n")
    assert response.code == ResponseCode.SUCCESS
    await broker.send("Second")
    assert topic(broker, "Second").write_queue_nums == 2, "the stored template decides"
    meaning = meanings()["defaultTopicQueueNums"]
    assert "TBW102" in meaning
    assert "new store" in meaning


async def test_default_query_max_num_is_for_queries_by_unique_key(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(default_query_max_num=1, max_msgs_num_batch=3)
    broker.topic("T")
    for _ in range(5):
        await broker.send("T", properties="KEYS\x01k")
    header = QueryMessageRequestHeader(
        topic="T", key="k", max_num=64, begin_timestamp=0, end_timestamp=2**60
    )
    response = await broker.ask(RequestCode.QUERY_MESSAGE, header)
    assert len(decode_records(response.body)) == 3
    assert "unique key" in meanings()["defaultQueryMaxNum"]


def test_meanings_of_gantry_are_not_shown_for_apache_brokers() -> None:
    ours, apache = meanings(), meanings(apache=True)
    for key in ("maxAutoCreateTopicNum", "transientStorePoolEnable"):
        assert key in ours
        assert key not in apache
    for key in ("fileReservedTime", "aclEnable"):
        assert apache[key] == ours[key]


def topic(broker: BrokerHarness, name: str) -> TopicConfig:
    found = broker.ctx.topics.get(name)
    assert found is not None
    return found
