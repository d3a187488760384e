"""The push consumer against a scripted broker: joining, start offsets, unregistering.

Tests against a real cluster are in tests/client.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.client import ConsumerSettings, PushConsumer
from core_broker.errors import ClientError
from core_broker.remoting.bodies import (
    ConsumeFromWhere,
    HeartbeatData,
    MessageModel,
    ResetOffsetBody,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.consumer_parts import record
from tests.support.eventually import eventually
from tests.support.one_broker import RETRY0, RETRY1, T0, T1, OneBroker, commits, consumer, succeed
from tests.support.scripted_peer import refuse


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "%RETRY%G"], {"b": peer.addr})
        yield peer


async def test_joining(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        assert joined.queues == [RETRY0, RETRY1, T0, T1]
        assert broker.members == [joined.client_id]
    beat = decode_body(HeartbeatData, broker.received(RequestCode.HEART_BEAT)[0].body)
    (data,) = beat.consumer_data_set
    assert (data.group_name, data.consume_type) == ("G", "CONSUME_PASSIVELY")
    assert (data.message_model, data.consume_from_where) == (
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
    )
    subscriptions = {it.topic: (it.sub_string, it.tags_set) for it in data.subscription_data_set}
    assert subscriptions == {"T": ("A || B", {"A", "B"}), "%RETRY%G": ("*", set())}
    (goodbye,) = broker.received(RequestCode.UNREGISTER_CLIENT)
    assert goodbye.ext_fields == {"clientID": beat.client_id, "consumerGroup": "G"}


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, 90),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, 10),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, 50),
    ],
)
async def test_where_a_new_group_begins(
    broker: OneBroker, where: ConsumeFromWhere, offset: int
) -> None:
    broker.offsets["T", 1] = 77
    async with consumer(broker, ConsumerSettings(consume_from=where)):
        await eventually(lambda: len(broker.pulls()) == 4)
    assert broker.pulls() == {
        ("T", 0): offset,
        ("T", 1): 77,
        ("%RETRY%G", 0): 0,
        ("%RETRY%G", 1): 0,
    }


async def test_the_time_to_begin_at_is_half_an_hour_ago_or_as_told(broker: OneBroker) -> None:
    settings = ConsumerSettings(
        consume_from=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, consume_timestamp_ms=123
    )
    async with consumer(broker, settings):
        await eventually(lambda: len(broker.pulls()) == 4)
    requests = broker.received(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    assert {request.ext_fields["timestamp"] for request in requests} == {"123"}


async def test_without_a_member_list_the_queues_are_kept(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(joined.queues) == 4)
        count_before = len(broker.received(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
        broker.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, lambda _: refuse(1))
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        await eventually(lambda: len(broker.received(code)) >= count_before + 2)
        assert len(joined.queues) == 4


async def test_an_offset_outside_of_the_queue_is_corrected(broker: OneBroker) -> None:
    broker.serve_once(ResponseCode.PULL_OFFSET_MOVED, 40)
    async with consumer(broker):
        await eventually(lambda: list(broker.pulls().values()) == [40] * 4)
    assert broker.offsets["T", 0] == 40


async def test_a_dead_broker_does_not_keep_the_others_from_being_consumed(
    broker: OneBroker,
) -> None:
    broker.serve_route(["T", "%RETRY%G"], {"a-dead": "127.0.0.1:1", "b": broker.addr})
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        assert {queue.broker_name for queue in joined.queues} == {"b"}


async def test_subscribing_while_running(broker: OneBroker) -> None:
    broker.serve_route(["T", "U", "%RETRY%G"], {"b": broker.addr})

    def told() -> set[str]:
        beat = decode_body(HeartbeatData, broker.received(RequestCode.HEART_BEAT)[-1].body)
        return {it.topic for it in beat.consumer_data_set[0].subscription_data_set}

    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        joined.subscribe("U")
        await eventually(lambda: len(broker.pulls()) == 6)
        await eventually(lambda: told() == {"T", "U", "%RETRY%G"})


async def test_a_consumer_can_be_suspended_only_while_it_runs(broker: OneBroker) -> None:
    first_consumer = consumer(broker)
    with pytest.raises(ClientError, match="not running"):
        first_consumer.suspend()
    async with first_consumer:
        first_consumer.suspend()
        await eventually(lambda: len(first_consumer.queues) == 4)
        assert broker.pulls() == {}
        first_consumer.resume()
        await eventually(lambda: len(broker.pulls()) == 4)


async def test_broadcasting_takes_all_queues_and_keeps_offsets_here(
    broker: OneBroker, tmp_path: Path
) -> None:
    settings = ConsumerSettings(model=MessageModel.BROADCASTING, local_offsets=tmp_path)
    broker.members.append("aaa")
    message_record = record(90, properties={"TAGS": "A"})
    broker.serve_once(ResponseCode.SUCCESS, 91, message_record)
    async with consumer(broker, settings) as first:
        await eventually(lambda: list(broker.pulls().values()) == [91] * 2)
        await eventually(lambda: commits(first) == {T0: 91, T1: 91})
    broker.requests.clear()
    async with consumer(broker, settings) as again:
        await eventually(lambda: list(broker.pulls().values()) == [91] * 2)
        assert again.queues == [T0, T1]
        assert again.client_id.endswith("@DEFAULT")
    assert broker.received(RequestCode.UPDATE_CONSUMER_OFFSET) == []
    assert broker.received(RequestCode.GET_MAX_OFFSET) == []


async def test_a_reset_that_comes_in_while_the_group_is_shared_out_counts(
    broker: OneBroker,
) -> None:
    broker.offsets["T", 0] = 90
    fields = {"group": "G", "topic": "T", "timestamp": "0", "isForce": "true"}

    def reset_first(request: RemotingCommand) -> RemotingCommand:
        body = encode_body(ResetOffsetBody(offset_table={T0: 3}))
        broker.notify(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        return broker.member_list(request)

    async with consumer(broker):
        await eventually(lambda: broker.pulls().get(("T", 0)) == 90)
        # One request for the member list per topic; the retry topic sorts before T.
        broker.script(RequestCode.GET_CONSUMER_LIST_BY_GROUP, [reset_first])
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: broker.pulls()["T", 0] == 3)
        assert broker.offsets["T", 0] == 3


async def test_no_server_is_no_reason_to_fail(caplog: pytest.LogCaptureFixture) -> None:
    joined = PushConsumer("G", "127.0.0.1:1")
    joined.subscribe("T")
    joined.listener(succeed)
    caplog.set_level("INFO")
    async with joined:
        await eventually(lambda: "Cannot connect to 127.0.0.1:1" in caplog.text)
        assert joined.queues == []


async def test_a_missing_listener_or_subscription_raises_at_the_start(broker: OneBroker) -> None:
    empty = PushConsumer("G", broker.addr)
    with pytest.raises(ClientError, match="listener"):
        await empty.start()
    empty.listener(succeed)
    with pytest.raises(ClientError, match="no subscription"):
        await empty.start()
    with pytest.raises(ClientError):
        empty.subscribe("no blanks")
    empty.subscribe("T")
    async with empty:
        with pytest.raises(ClientError, match="already"):
            await empty.start()
    await empty.stop()
    assert (empty.queues, empty.client_id, empty.running_info()) == ([], "", None)


async def test_a_consumer_dropped_without_stop_warns(broker: OneBroker) -> None:
    consumers = [consumer(broker)]
    await consumers[0].start()
    running = consumers[0]._running
    with pytest.warns(ResourceWarning, match="without stop"):
        consumers.clear()
    assert running is not None
    await running.stop()
