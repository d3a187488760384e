"""What a slave refuses, with RocketMQ's codes, and what it serves."""

import pytest

from core_broker.remoting.bodies import SubscriptionGroupConfig, encode_body
from core_broker.remoting.codes import RequestCode
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker

READ_ONLY = (
    "Can't modify topic or subscription group from slave broker, "
    "please execute it from master broker."
)


@pytest.fixture
def slave(make_broker: MakeBroker) -> BrokerHarness:
    broker = make_broker(broker_role="SLAVE", broker_id=1)
    broker.topic("T")
    return broker


async def test_sends_are_refused_and_create_nothing(slave: BrokerHarness) -> None:
    for topic in ("T", "NewTopic"):
        answer = await slave.send(topic, b"x")
        assert answer.code == 14
        assert "put to the slave" in (answer.remark or "")
    assert slave.ctx.topics.get("NewTopic") is None
    assert slave.ctx.store.max_offset_physical == 0


async def test_a_send_back_is_refused(slave: BrokerHarness) -> None:
    header = {"group": "G", "offset": "0", "delayLevel": "0", "originMsgId": "", "originTopic": "T"}
    answer = await slave.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
    assert (answer.code, answer.remark) == (1, "SERVICE_NOT_AVAILABLE")
    assert slave.ctx.topics.get("%RETRY%G") is None


TOPIC = {
    "topic": "N",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "4",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
}


@pytest.mark.parametrize(
    ("code", "header", "body"),
    [
        (RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC, b""),
        (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, {}, b'{"topicConfigList":[]}'),
        (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}, b""),
        (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            {},
            encode_body(SubscriptionGroupConfig(group_name="N")),
        ),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, b'{"groupConfigList":[]}'),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G"}, b""),
    ],
)
async def test_topics_and_groups_change_on_the_master_only(
    slave: BrokerHarness, code: RequestCode, header: dict[str, str], body: bytes
) -> None:
    answer = await slave.ask(code, header, body)
    assert (answer.code, answer.remark) == (1, READ_ONLY)
    assert slave.ctx.topics.get("T") is not None
    assert slave.ctx.topics.get("N") is None
    assert slave.ctx.groups.get("N") is None


async def test_offsets_are_not_reset_but_committed(slave: BrokerHarness) -> None:
    header = {"topic": "T", "group": "G", "timestamp": "-1", "isForce": "true"}
    body = b'{"offsetTable":{}}'
    answer = await slave.ask(RequestCode.SET_GROUP_OFFSETS, header, body)
    assert (answer.code, answer.remark) == (1, "Can not reset offset in slave broker")
    commit = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "5"}
    assert (await slave.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)).code == 0
    assert slave.ctx.offsets.committed("G", "T", 0) == 5
