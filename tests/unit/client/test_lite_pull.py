"""Lite pull consumers against a scripted broker: codes 361 and 11, malformed answers, limits."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import (
    ConsumeStatus,
    LitePullConsumer,
    LitePullSettings,
    MessageExt,
    PullConsumer,
    PullStatus,
    PushConsumer,
)
from core_broker.client.consumer import polling
from core_broker.client.consumer.polling import PolledMessages
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.errors import ClientError, GantryError, ProtocolError, RequestRefused
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, decode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.consumer_parts import QUEUE, message, record
from tests.support.eventually import eventually
from tests.support.one_broker import T0, T1, OneBroker
from tests.support.scripted_peer import Handler, ok, refuse

PULL, LITE = RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE
QUICK = LitePullSettings(rebalance_interval_s=0.05, poll_timeout_ms=50)


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "%RETRY%G"], {"b": peer.addr})
        peer.on(LITE, lambda _: None)
        yield peer


def polled(broker: OneBroker, settings: LitePullSettings = QUICK) -> LitePullConsumer:
    consumer = LitePullConsumer("G", broker.addr, settings=settings)
    consumer.subscribe("T", "Aa")
    return consumer


async def test_lite_pulls_use_361_and_carry_the_subscription(broker: OneBroker) -> None:
    async with polled(broker) as consumer:
        await eventually(lambda: len(broker.received(LITE)) == 2)
        assert consumer.queues == [T0, T1]
    fields = broker.received(LITE)[0].ext_fields
    # The flags suspend, subscription and lite, without a commit offset.
    assert (fields["sysFlag"], fields["subscription"]) == ("22", "Aa")
    assert broker.received(PULL) == []
    beat = decode_body(HeartbeatData, broker.received(RequestCode.HEART_BEAT)[0].body)
    (data,) = beat.consumer_data_set
    assert data.consume_type == "CONSUME_ACTIVELY"
    assert {it.topic for it in data.subscription_data_set} == {"T"}


async def test_a_broker_that_does_not_know_361_is_asked_with_11(broker: OneBroker) -> None:
    broker.on(LITE, lambda _: refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED))
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90, properties={"TAGS": "Aa"}))
    async with polled(broker) as consumer:
        bodies: list[bytes] = []
        while len(bodies) < 2:
            bodies += [it.body for it in await consumer.poll()]
        await eventually(lambda: len(broker.received(PULL)) == 4)
    assert len(broker.received(LITE)) <= 2
    assert broker.received(PULL)[0].ext_fields["sysFlag"] == "6"


async def test_assigned_queues_are_read_without_asking_for_members(broker: OneBroker) -> None:
    consumer = LitePullConsumer("G", broker.addr, settings=QUICK)
    consumer.assign([T1])
    async with consumer:
        await eventually(lambda: consumer.queues == [T1])
        consumer.assign([T0])
        await eventually(lambda: consumer.queues == [T0])
    assert broker.received(RequestCode.GET_CONSUMER_LIST_BY_GROUP) == []


async def test_invalid_calls_raise(broker: OneBroker) -> None:
    consumer = polled(broker)
    for wrong in (consumer.poll(), consumer.commit(), consumer.seek(T0, 0)):
        with pytest.raises(ClientError, match="not running"):
            await wrong
    with pytest.raises(ClientError, match="before the start"):
        consumer.assign([T0])
    async with consumer:
        waiting = asyncio.create_task(consumer.poll(10_000))
        await asyncio.sleep(0)
        with pytest.raises(ClientError, match="already runs a poll"):
            await consumer.poll()
        with pytest.raises(ClientError, match="running already"):
            await consumer.start()
    assert await waiting == []


def found(*records: bytes) -> RemotingCommand:
    fields = {"suggestWhichBrokerId": "0", "nextBeginOffset": "91", "minOffset": "0"}
    return ok({**fields, "maxOffset": "91"}, b"".join(records))


RUBBISH: list[Handler] = [
    lambda _: ok(body=b"no fields at all"),
    lambda _: found(b"\x00\x00\x00\x08rubbish"),
    lambda _: found(record(90)[:-5]),
    lambda _: found(b"\xff" * 100),
    lambda _: ok({"nextBeginOffset": "many", "minOffset": "0", "maxOffset": "1"}),
    lambda _: refuse(9999, "\x00\ud7ff" * 99),
    lambda _: ProtocolError("no"),
]


@pytest.mark.parametrize("number", range(len(RUBBISH)))
async def test_rubbish_for_an_answer_is_a_typed_error(broker: OneBroker, number: int) -> None:
    broker.on(PULL, RUBBISH[number])
    async with PullConsumer("G", broker.addr) as consumer:
        with pytest.raises(GantryError):
            await consumer.pull(T0, 5)
        with pytest.raises(GantryError):
            await consumer.pull_blocking(T0, 5, suspend_ms=1)


@pytest.mark.parametrize("number", range(len(RUBBISH)))
async def test_after_rubbish_consuming_goes_on(
    broker: OneBroker, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.client.consumer.puller.PAUSE_AFTER_ERROR_S", 0.01)
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90))
    broker.script(PULL, [RUBBISH[number]] * 6)
    consumed: list[MessageExt] = []
    consumer = PushConsumer("G", broker.addr)
    consumer.subscribe("T")

    @consumer.listener
    async def listen(messages: list[MessageExt]) -> ConsumeStatus:
        consumed.extend(messages)
        return ConsumeStatus.CONSUME_SUCCESS

    async with consumer:
        await eventually(lambda: len(consumed) == 4)


@pytest.mark.parametrize(
    "answer",
    [
        ok(body=b""),
        ok(body=b"\xff"),
        ok(body=b'{"consumerIdList":7}'),
        ok(body=b'{"consumerIdList":[null,1]}'),
        refuse(1),
    ],
)
async def test_rubbish_for_members_leaves_the_queues_alone(
    broker: OneBroker, answer: RemotingCommand
) -> None:
    async with polled(broker) as consumer:
        await eventually(lambda: consumer.queues == [T0, T1])
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        count_before = len(broker.received(code))

        def rubbish(_request: RemotingCommand) -> RemotingCommand:
            return RemotingCommand.response(answer.code, None, {}, answer.body)

        broker.on(code, rubbish)
        await eventually(lambda: len(broker.received(code)) > count_before + 1)
        assert consumer.queues == [T0, T1]


async def test_a_failing_commit_raises(broker: OneBroker) -> None:
    broker.on(RequestCode.UPDATE_CONSUMER_OFFSET, lambda _: refuse(26))
    async with PullConsumer("G", broker.addr) as consumer:
        with pytest.raises(RequestRefused):
            await consumer.commit(T0, 5)
    broker.members.clear()
    async with polled(broker) as lite:
        await eventually(lambda: lite.queues == [T0, T1])
        with pytest.raises(RequestRefused):
            await lite.commit({T0: 5})


async def test_where_a_pull_leads(broker: OneBroker) -> None:
    broker.serve_once(ResponseCode.PULL_OFFSET_MOVED, 40)
    async with PullConsumer("G", broker.addr) as consumer:
        assert await consumer.committed(T0) is None
        result = await consumer.pull(T0, 5)
        assert (result.status, result.next_offset) == (PullStatus.OFFSET_ILLEGAL, 40)
        # Offsets 10 to 90 by the broker, without stored messages: the iteration still ends.
        broker.on(PULL, lambda _: found())
        assert [it async for it in consumer.messages(T0, 10)] == []


async def test_waiting_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "MESSAGES_WAITING_MAX", 3)
    waiting = PolledMessages(lambda _: None)
    first = ProcessQueue(QUEUE, 0)
    second = ProcessQueue(MessageQueue("T", "b", 1), 0)
    await waiting.submit(first, [message(offset) for offset in range(3)])
    blocked = asyncio.create_task(waiting.submit(second, [message(9)]))
    await asyncio.sleep(0)
    assert not blocked.done()
    batch = waiting.take(2, lambda _: False)
    assert batch is not None
    assert [it.queue_offset for it in batch[1]] == [0, 1]
    await blocked
    # Round robin: a polled queue goes to the end; messages of dropped queues are not returned.
    first.dropped = True
    batch = waiting.take(9, lambda _: False)
    assert batch is not None
    assert batch[0] is second
    assert waiting.take(9, lambda _: False) is None
