"""A message from producer to dead-letter queue, over real sockets and a restart of the broker."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from core_broker.message.record import decode_record, decode_records
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    QueryConsumeQueueResponseBody,
    SubscriptionData,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    ConsumerSendMsgBackRequestHeader,
    CreateTopicRequestHeader,
    QueryConsumeQueueRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryMessageRequestHeader,
    UpdateConsumerOffsetRequestHeader,
    ViewMessageRequestHeader,
)
from tests.support.broker_requests import send_header
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]


def heartbeat(client_id: str) -> bytes:
    consumer = ConsumerData(group_name="CG", subscription_data_set=[SubscriptionData(topic="T")])
    return encode_body(HeartbeatData(client_id=client_id, consumer_data_set=[consumer]))


def send_back(offset: int, failures: int) -> ConsumerSendMsgBackRequestHeader:
    return ConsumerSendMsgBackRequestHeader(
        offset=offset, group="CG", delay_level=1, max_reconsume_times=failures
    )


async def test_send_pull_commit_retry_dead_letter_and_query(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    sent = await client.send("T", b"order 1", "KEYS\x01K1\x02UNIQ_KEY\x01U1\x02TAGS\x01A")
    assert sent.code == 0

    (received,) = decode_records((await client.pull("T")).body)
    assert (received.body, received.offset_msg_id) == (b"order 1", sent.ext_fields["msgId"])

    commit = UpdateConsumerOffsetRequestHeader(
        consumer_group="CG", topic="T", queue_id=0, commit_offset=1
    )
    await client.oneway(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    query = QueryConsumerOffsetRequestHeader(consumer_group="CG", topic="T", queue_id=0)
    answer = await client.request(RequestCode.QUERY_CONSUMER_OFFSET, query)
    assert answer.ext_fields == {"offset": "1"}

    await client.request(36, send_back(received.offset_physical, 1))
    (again,) = decode_records((await client.pull("%RETRY%CG")).body)
    assert (again.body, again.reconsume_times) == (b"order 1", 1)
    assert again.properties["RETRY_TOPIC"] == "T"

    await client.request(36, send_back(again.offset_physical, 1))
    assert (await client.pull("%DLQ%CG")).code == 16
    units = await client.request(321, QueryConsumeQueueRequestHeader(topic="%DLQ%CG", count=10))
    (unit,) = decode_body(QueryConsumeQueueResponseBody, units.body).queue_data
    dead = await client.request(33, ViewMessageRequestHeader(offset=unit.physic_offset))
    assert decode_record(dead.body).body == b"order 1"

    by_key = QueryMessageRequestHeader(
        topic="T", key="K1", max_num=32, begin_timestamp=0, end_timestamp=2**62
    )
    found = await client.request(RequestCode.QUERY_MESSAGE, by_key)
    assert [each.body for each in decode_records(found.body)] == [b"order 1"]


async def test_a_restart_keeps_everything(start_broker: MakeBroker, connect: Connect) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    create = CreateTopicRequestHeader(
        topic="Made",
        default_topic="TBW102",
        read_queue_nums=3,
        write_queue_nums=3,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    assert (await client.request(17, create)).code == 0
    for number in range(20):
        assert (await client.send("Made", b"%d" % number, "KEYS\x01k", queue_id=2)).code == 0
    await client.send("Auto", b"auto")
    commit = UpdateConsumerOffsetRequestHeader(
        consumer_group="CG", topic="Made", queue_id=2, commit_offset=7
    )
    assert (await client.request(15, commit)).code == 0
    await client.send("Made", b"late", "DELAY\x015", queue_id=0)
    await broker.stop()

    broker = await start_broker()
    client = connect(broker.addr)
    messages = decode_records((await client.pull("Made", queue_id=2)).body)
    assert [each.body for each in messages] == [b"%d" % number for number in range(20)]
    assert (await client.pull("Auto")).code == 0
    query = QueryConsumerOffsetRequestHeader(consumer_group="CG", topic="Made", queue_id=2)
    assert (await client.request(14, query)).ext_fields == {"offset": "7"}
    assert (await client.send("Made", b"next", queue_id=2)).ext_fields["queueOffset"] == "20"
    (late,) = decode_records((await client.pull("Made", queue_id=0)).body)
    assert late.body == b"late"


async def test_one_way_messages_arrive_without_a_response(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    producer, consumer = connect(broker.addr), connect(broker.addr)
    await producer.send("T", b"first")
    waiting = asyncio.create_task(consumer.pull("T", 1))
    await producer.oneway(310, send_header("T"), b"second")
    (message,) = decode_records((await waiting).body)
    assert message.body == b"second"


async def test_sync_flush_acknowledges_every_send(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker(flush_disk_type="SYNC_FLUSH")
    client = connect(broker.addr)
    answers = await asyncio.gather(*(client.send("T", b"%d" % number) for number in range(50)))
    assert {answer.code for answer in answers} == {0}
    assert sorted(int(answer.ext_fields["queueOffset"]) for answer in answers) == list(range(50))


async def test_consumers_are_notified_of_each_other(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    first, second = connect(broker.addr), connect(broker.addr)
    await first.request(34, body=heartbeat("c1"))
    await second.request(34, body=heartbeat("c2"))
    await eventually(lambda: len(first.received) == 2)
    await second.close()
    await eventually(lambda: len(first.received) == 3)
    assert {each.code for each in first.received} == {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED}
    answer = await first.request(38, {"consumerGroup": "CG"})
    assert answer.body == b'{"consumerIdList":["c1"]}'


async def test_the_vip_port_accepts_messages_but_no_pulls(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    vip = connect(f"127.0.0.1:{broker.vip_port}")
    assert (await vip.send("T", b"x")).code == 0
    assert (await vip.pull("T")).code == 3


async def test_a_changed_setting_survives_in_its_file(
    start_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=broker-a\n")
    broker = await start_broker(settings_file=file)
    answer = await connect(broker.addr).request(25, body=b"flushIntervalCommitLog=501\n")
    assert answer.code == 0
    lines = file.read_text().splitlines()
    assert "flushIntervalCommitLog=501" in lines
    assert "brokerName=broker-a" in lines
