"""Bodies of C++ and other clients, and computed members."""

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting import bodies, fastjson
from core_broker.remoting.bodies import (
    BrokerData,
    ConsumerConnection,
    ConsumeStats,
    DataVersion,
    Dialect,
    HeartbeatData,
    MessageQueue,
    OffsetWrapper,
    QueueData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRouteData,
    decode_body,
    decode_request,
    encode_body,
)
from core_broker.remoting.bodies.codec import (
    REQUEST_BODY_BYTES_MAX,
    REQUEST_OBJECTS_MAX,
    REQUEST_TOKENS_MAX,
)

CPP_HEARTBEAT = b"""{"clientID":"9335-127.0.0.1@DEFAULT","consumerDataSet":[{"consumeFromWhere":0,\
"consumeType":1,"groupName":"CG","messageModel":1,"subscriptionDataSet":[{"subString":"*",\
"subVersion":"1795249951617","topic":"%RETRY%CG"},{"codeSet":[0,0],"subString":"A || B",\
"subVersion":"1795249951618","tagsSet":["A","B"],"topic":"T1"}]}],\
"producerDataSet":[{"groupName":"PG"}]}
"""


def test_heartbeat_of_a_cpp_client() -> None:
    heartbeat = decode_body(HeartbeatData, CPP_HEARTBEAT)
    (consumer,) = heartbeat.consumer_data_set
    assert heartbeat.client_id == "9335-127.0.0.1@DEFAULT"
    assert consumer.consume_type == bodies.ConsumeType.CONSUME_PASSIVELY
    assert consumer.message_model == bodies.MessageModel.CLUSTERING
    assert consumer.consume_from_where == bodies.ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    retry, wanted = consumer.subscription_data_set
    assert (retry.sub_string, retry.expression_type, retry.tags_set) == ("*", "TAG", set())
    assert wanted.tags_set == {"A", "B"}
    assert wanted.sub_version == 1795249951618


def test_enumerations_are_written_as_names() -> None:
    heartbeat = decode_body(HeartbeatData, CPP_HEARTBEAT)
    encoded = encode_body(heartbeat)
    assert b'"consumeType":"CONSUME_PASSIVELY"' in encoded
    assert decode_body(HeartbeatData, encoded) == heartbeat


def test_an_unknown_name_is_kept_and_an_unknown_number_refused() -> None:
    body = decode_body(ConsumerConnection, b'{"consumeType":"CONSUME_BY_POST"}')
    assert body.consume_type == "CONSUME_BY_POST"
    with pytest.raises(ProtocolError, match="no member number 7"):
        decode_body(ConsumerConnection, b'{"consumeType":7}')


@pytest.mark.parametrize(
    "addrs", [b'{0:"10.0.0.1:1"}', b'{"0":"10.0.0.1:1"}', b'{"0": "10.0.0.1:1"}']
)
def test_every_spelling_of_broker_addresses(addrs: bytes) -> None:
    route = decode_body(
        TopicRouteData, b'{"brokerDatas":[{"brokerAddrs":%s,"brokerName":"b"}]}' % addrs
    )
    assert route.broker_datas[0].broker_addrs == {0: "10.0.0.1:1"}
    assert route.broker_datas[0].master_addr == "10.0.0.1:1"


def test_no_master() -> None:
    assert BrokerData(broker_name="b", broker_addrs={1: "x"}).master_addr is None


@pytest.mark.parametrize(
    ("perm", "readable", "writable"),
    [(6, True, True), (4, True, False), (2, False, True), (0, False, False), (7, True, True)],
)
def test_permissions(perm: int, readable: bool, writable: bool) -> None:
    queues = QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=perm)
    assert queues.is_readable is readable
    assert queues.is_writable is writable


def test_defaults_are_not_shared() -> None:
    first, second = bodies.TopicConfigSerializeWrapper(), bodies.TopicConfigSerializeWrapper()
    first.topic_config_table["T"] = TopicConfig(topic_name="T")
    first.data_version.counter = 9
    assert second.topic_config_table == {}
    assert second.data_version == DataVersion()


def test_defaults_of_rocketmq() -> None:
    topic = TopicConfig(topic_name="T")
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (16, 16, 6)
    group = SubscriptionGroupConfig(group_name="G")
    assert (group.retry_max_times, group.retry_queue_nums) == (16, 1)
    assert group.which_broker_when_consume_slowly == 1


def test_members_that_are_null_keep_their_defaults() -> None:
    topic = decode_body(TopicConfig, b'{"topicName":"T","perm":null,"order":null}')
    assert topic == TopicConfig(topic_name="T")


def test_unknown_members_are_passed_over() -> None:
    topic = decode_body(TopicConfig, b'{"topicName":"T","new":{"a":[1,{0:1}]}}')
    assert topic == TopicConfig(topic_name="T")


def test_the_next_version_differs() -> None:
    version = DataVersion(timestamp=1, counter=4)
    assert version.next(99) == DataVersion(timestamp=99, counter=5)
    assert version == DataVersion(timestamp=1, counter=4)


def test_queues_are_keys_and_have_an_order() -> None:
    queues = [MessageQueue("T", "b", 1), MessageQueue("T", "a", 2), MessageQueue("T", "a", 0)]
    assert [queue.queue_id for queue in sorted(queues)] == [0, 2, 1]
    assert len({*queues, MessageQueue("T", "b", 1)}) == 3
    assert str(queues[0]) == "T@b:1"


def test_a_table_by_queue_in_java_form() -> None:
    stats = decode_body(
        ConsumeStats,
        b'{"consumeTps":0.5,"offsetTable":{{"brokerName":"b","queueId":"1","topic":"T"}:'
        b'{"brokerOffset":2,"consumerOffset":1}}}',
    )
    assert stats.offset_table == {
        MessageQueue("T", "b", 1): OffsetWrapper(broker_offset=2, consumer_offset=1)
    }
    assert encode_body(stats, Dialect.STANDARD) == encode_body(stats, Dialect.FASTJSON)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"7",
        b'{"topicName":null}',
        b'{"topicName":"T","perm":"six"}',
        b'{"topicName":"T","perm":' + b"9" * 5000 + b"}",
        b'{"topicName":' + b"[" * 100_000,
        b'{"topicName":"\xff"}',
        b'{{"a":1}:2}',
    ],
)
def test_hostile_bodies(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_body(TopicConfig, data)


def test_request_bodies_are_limited_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "loads", None)  # Python's parser must not see such a body
    oversize = b'{"clientID":"%s"}' % (b"x" * REQUEST_BODY_BYTES_MAX)
    with pytest.raises(ProtocolError, match=f"longer than {REQUEST_BODY_BYTES_MAX}"):
        decode_request(HeartbeatData, oversize)
    many = b'{"clientID":"c","producerDataSet":[%s{}]}' % (b"{}," * REQUEST_OBJECTS_MAX)
    with pytest.raises(ProtocolError, match=f"{REQUEST_OBJECTS_MAX} are possible"):
        decode_request(HeartbeatData, many)
    for body in (b"[" + b"1," * 20_000 + b",]", b"{a:'" + b"\\u0041" * 20_000 + b"'}"):
        with pytest.raises(ProtocolError, match=f"may have {REQUEST_TOKENS_MAX} commas"):
            decode_request(HeartbeatData, body)


def test_short_request_bodies_may_have_the_form_of_fastjson() -> None:
    body = b"{'clientID':'c',producerDataSet:[{groupName:'PG'}],}"
    assert decode_request(HeartbeatData, body) == decode_body(HeartbeatData, body)
    group = b'{"groupName":"G","attributes":{%s"z":"z"}}' % (b'"k":"v",' * 100_000)
    assert decode_request(SubscriptionGroupConfig, group).attributes == {"k": "v", "z": "z"}
