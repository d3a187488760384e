"""An orderly push consumer against a broker with scripted locks: a queue never has two owners."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import ConsumeOrderlyStatus, ConsumerSettings, MessageExt, PushConsumer
from core_broker.client.consumer import group_member, orderly_delivery
from core_broker.remoting.bodies import (
    LockBatchRequestBody,
    MessageModel,
    MessageQueue,
    ResetOffsetBody,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.consumer_parts import record
from tests.support.eventually import eventually
from tests.support.one_broker import RETRY0, RETRY1, T0, T1, OneBroker
from tests.support.scripted_peer import refuse

LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ
QUICK = ConsumerSettings(suspend_current_queue_ms=10, rebalance_interval_s=0.05)


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "%RETRY%G"], {"b": peer.addr})
        yield peer


class Works:
    """A listener blocking each call until the test releases the call."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.offsets: list[int] = []

    async def __call__(self, messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        self.offsets.append(messages[0].queue_offset)
        await self.gate.wait()
        return ConsumeOrderlyStatus.SUCCESS


def orderly(broker: OneBroker, works: Works, settings: ConsumerSettings = QUICK) -> PushConsumer:
    consumer = PushConsumer("G", broker.addr, settings=settings)
    consumer.subscribe("T")
    consumer.orderly_listener(works)
    return consumer


def unlocked(broker: OneBroker) -> set[MessageQueue]:
    bodies = (decode_body(UnlockBatchRequestBody, it.body) for it in broker.received(UNLOCK))
    return {queue for body in bodies for queue in body.mq_set}


def offsets_asked(broker: OneBroker, queue: MessageQueue) -> set[int]:
    pulls = (it.ext_fields for it in broker.received(RequestCode.PULL_MESSAGE))
    return {
        int(it["queueOffset"])
        for it in pulls
        if (it["topic"], int(it["queueId"])) == (queue.topic, queue.queue_id)
    }


async def test_a_queue_is_locked_before_its_offset_is_asked_for(broker: OneBroker) -> None:
    broker.locked_by_others.add(T1)
    async with orderly(broker, Works()) as consumer:
        await eventually(lambda: consumer.queues == [RETRY0, RETRY1, T0])
        requests = broker.received(RequestCode.QUERY_CONSUMER_OFFSET)
        assert ("T", "1") not in {
            (it.ext_fields["topic"], it.ext_fields["queueId"]) for it in requests
        }
        # The previous owner consumed further, committed, and unlocked the queue.
        broker.offsets["T", 1] = 123
        broker.locked_by_others.clear()
        await eventually(lambda: broker.pulls().get(("T", 1)) == 123)
        info = consumer.running_info()
        assert info is not None
        assert info.properties["PROP_CONSUMEORDERLY"] == "true"
        assert all(it.locked and it.last_lock_timestamp for it in info.mq_table.values())
    assert unlocked(broker) == {RETRY0, RETRY1, T0, T1}


async def test_a_queue_that_moves_on_is_unlocked_when_its_call_has_ended(
    broker: OneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orderly_delivery, "RELEASE_WAIT_S", 0.01)
    works = Works()
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90))
    async with orderly(broker, works) as consumer:
        await eventually(lambda: len(works.offsets) == 4)
        # A member with a lower id joins: the new member gets the first queue of each topic.
        broker.members.append("")
        lists = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        count_before = len(broker.received(lists))
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: len(broker.received(lists)) > count_before + 6)
        assert unlocked(broker) == set()
        assert len(consumer.queues) == 4
        works.gate.set()
        await eventually(lambda: unlocked(broker) == {RETRY0, T0})
        assert consumer.queues == [RETRY1, T1]
    # The queue was dropped during the call: the next owner consumes the message again.
    assert broker.offsets.get(("T", 0)) != 91


async def test_a_lock_that_is_lost_ends_the_consuming_and_commits_nothing(
    broker: OneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_member, "LOCK_RENEW_INTERVAL_S", 0.02)
    works = Works()
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90))
    async with orderly(broker, works) as consumer:
        await eventually(lambda: len(works.offsets) == 4)
        broker.locked_by_others.add(T0)
        works.gate.set()
        await eventually(lambda: T0 not in consumer.queues)
        assert T0 not in unlocked(broker)
        broker.offsets["T", 0] = 500
        broker.locked_by_others.clear()
        await eventually(lambda: 500 in offsets_asked(broker, T0))


async def test_a_broker_that_does_not_answer_keeps_nobody_else_from_consuming(
    broker: OneBroker,
) -> None:
    broker.serve_route(["T", "%RETRY%G"], {"a-dead": "127.0.0.1:1", "b": broker.addr})
    async with orderly(broker, Works()) as consumer:
        await eventually(lambda: consumer.queues == [RETRY0, RETRY1, T0, T1])


async def test_a_broadcasting_consumer_needs_no_locks(broker: OneBroker, tmp_path: object) -> None:
    works = Works()
    works.gate.set()
    settings = ConsumerSettings(model=MessageModel.BROADCASTING, local_offsets=tmp_path)
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90))
    async with orderly(broker, works, settings):
        await eventually(lambda: works.offsets == [90, 90])
    assert broker.received(LOCK) == []


async def test_a_reset_while_a_call_runs_goes_on_at_the_new_offset(
    broker: OneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orderly_delivery, "RELEASE_WAIT_S", 0.01)
    works = Works()
    broker.serve_once(ResponseCode.SUCCESS, 91, record(90))
    fields = {"group": "G", "topic": "T", "timestamp": "0", "isForce": "true"}
    async with orderly(broker, works):
        await eventually(lambda: len(works.offsets) == 4)
        body = encode_body(ResetOffsetBody(offset_table={T0: 3}))
        broker.notify(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        await asyncio.sleep(0)
        works.gate.set()
        await eventually(lambda: 3 in offsets_asked(broker, T0))
    lock_requests = [decode_body(LockBatchRequestBody, it.body) for it in broker.received(LOCK)]
    assert {it.consumer_group for it in lock_requests} == {"G"}


@pytest.mark.parametrize("code", [1, 2, 3, 16])
async def test_a_broker_that_refuses_locks_is_asked_again(broker: OneBroker, code: int) -> None:
    broker.script(LOCK, [lambda _: refuse(code, "no")] * 4)
    async with orderly(broker, Works()) as consumer:
        await eventually(lambda: len(consumer.queues) == 4)
