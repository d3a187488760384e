"""The bodies of all recorded frames with a typed body."""

from typing import Any

import pytest

from core_broker.errors import ProtocolError
from core_broker.message.batch import decode_batch
from core_broker.message.record import decode_records
from core_broker.remoting import bodies as b
from core_broker.remoting import fastjson
from core_broker.remoting.bodies.codec import decode_body, encode_body
from core_broker.remoting.bodies.register import decode_register_body
from tests.wire.recorded import Recorded, recorded

REQUESTS: dict[int, type[Any]] = {
    34: b.HeartbeatData,
    103: b.RegisterBrokerBody,
    200: b.SubscriptionGroupConfig,
    220: b.ResetOffsetBody,
    400: b.QueryAssignmentRequestBody,
}
ANSWERS: dict[int, type[Any]] = {
    21: b.TopicConfigSerializeWrapper,
    28: b.KVTable,
    38: b.GetConsumerListByGroupResponseBody,
    43: b.ConsumerOffsetSerializeWrapper,
    45: b.DelayOffsetSerializeWrapper,
    105: b.TopicRouteData,
    106: b.ClusterInfo,
    201: b.SubscriptionGroupWrapper,
    202: b.TopicStatsTable,
    203: b.ConsumerConnection,
    204: b.ProducerConnection,
    206: b.TopicList,
    208: b.ConsumeStats,
    222: b.ResetOffsetBody,
    300: b.GroupList,
    305: b.TopicList,
    307: b.ConsumerRunningInfo,
    309: b.ConsumeMessageDirectlyResult,
    315: b.BrokerStatsData,
    317: b.ConsumeStatsList,
    321: b.QueryConsumeQueueResponseBody,
    351: b.TopicConfig,
    400: b.QueryAssignmentResponseBody,
    907: b.HARuntimeInfo,
}
#: Members of 5.x without a meaning for Gantry.
UNKNOWN = {
    *("mappingDataVersion", "topicQueueMappingDetailMap", "topicQueueMappingInfoMap"),
    *("groupRetryPolicy",),
}


def kind_of(frame: Recorded) -> type[Any] | None:
    table = ANSWERS if frame.is_answer else REQUESTS
    return table.get(frame.request_code) if frame.start else None


TYPED = [frame for frame in recorded() if kind_of(frame) is not None]
WHOLE = [frame for frame in TYPED if frame.body is not None]
CUT = [frame for frame in TYPED if frame.body is None]
RECORDS = [frame for frame in recorded() if frame.start[4:8] == b"\xda\xa3\x20\xa7"]
BATCHES = [frame for frame in recorded() if frame.request_code == 320 and not frame.is_answer]


def known(value: Any) -> Any:
    """A value without members unknown to Gantry; lists are sorted, because sets have no order."""
    if isinstance(value, dict):
        return {name: known(member) for name, member in value.items() if name not in UNKNOWN}
    return sorted(map(known, value), key=repr) if isinstance(value, list) else value


@pytest.mark.parametrize("frame", WHOLE, ids=str)
def test_whole_body(frame: Recorded) -> None:
    kind = kind_of(frame)
    assert kind is not None
    assert frame.body is not None
    body = decode_body(kind, frame.body)

    encoded = encode_body(body, b.Dialect.FASTJSON)
    assert decode_body(kind, encoded) == body
    assert known(fastjson.loads(encoded)) == known(fastjson.loads(frame.body))
    assert decode_body(kind, encode_body(body, b.Dialect.STANDARD)) == body


EXACT = (202, 208, 222, 106, 105, 45, 43, 38, 300, 309, 351, 400, 907)


@pytest.mark.parametrize("frame", [f for f in WHOLE if f.request_code in EXACT], ids=str)
def test_written_byte_for_byte_as_java_does(frame: Recorded) -> None:
    kind = kind_of(frame)
    assert kind is not None
    assert frame.body is not None
    dialect = b.Dialect.STANDARD if frame.request_code == 105 else b.Dialect.FASTJSON
    assert encode_body(decode_body(kind, frame.body), dialect) == frame.body


@pytest.mark.parametrize("frame", CUT, ids=str)
def test_a_body_cut_off_is_refused(frame: Recorded) -> None:
    kind = kind_of(frame)
    assert kind is not None
    with pytest.raises(ProtocolError):
        decode_body(kind, frame.start)


@pytest.mark.parametrize("frame", [f for f in WHOLE if f.request_code == 103], ids=str)
def test_registration(frame: Recorded) -> None:
    assert frame.body is not None
    body = decode_register_body(frame.body, compressed=False)
    assert body.topic_config_serialize_wrapper.topic_config_table
    assert body.topic_config_serialize_wrapper.data_version.timestamp > 0


@pytest.mark.parametrize("frame", RECORDS, ids=str)
def test_messages_cut_off_are_refused(frame: Recorded) -> None:
    with pytest.raises(ProtocolError):
        decode_records(frame.start)


@pytest.mark.parametrize("frame", BATCHES, ids=str)
def test_batches_cut_off_are_refused(frame: Recorded) -> None:
    with pytest.raises(ProtocolError):
        decode_batch(frame.start)


def test_most_bodies_are_whole() -> None:
    too_long = {21, 28, 201, 203, 307, 317}
    assert {frame.request_code for frame in WHOLE} == {*REQUESTS, *ANSWERS} - too_long
    assert len(RECORDS) >= 6
    assert len(BATCHES) == 2
