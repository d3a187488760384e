"""Traces on a real cluster: the records are indexed by key and show the message's journey."""

from collections.abc import Awaitable, Callable

from core_broker.client import AdminClient, ConsumerSettings, Producer
from core_broker.message.model import Message
from core_broker.message.topics import TRACE_TOPIC
from core_broker.remoting.bodies import ConsumeFromWhere
from tests.client.receiving import ClusterAddrs, Receiver
from tests.support.eventually import eventually
from trace.attempts import AttemptState
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord, decode_trace
from trace.hooks import TraceHook
from trace.timeline import EventKind, Outcome, build_timeline

NewTopic = Callable[..., Awaitable[str]]


async def records_of(cluster: ClusterAddrs, admin: AdminClient, msg_id: str) -> list[TraceRecord]:
    """The trace records of a message, queried by the index of the trace topic like the console."""
    trace_messages = await admin.query_message(cluster.broker_addr, TRACE_TOPIC, msg_id, 64)
    decoded = [decode_trace(message.decompressed_body()) for message in trace_messages]
    assert all(it.broken_count == 0 for it in decoded)
    return [record for it in decoded for record in it.records if record.msg_id == msg_id]


async def test_a_message_that_was_consumed(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    hooks = (TraceHook(), TraceHook())
    async with (
        Producer(f"p-{group}", quick_cluster.namesrv_addr, hooks[:1]) as producer,
        Receiver(quick_cluster, group, topic, hooks=hooks[1:]) as receiver,
    ):
        sent = await producer.send(Message(topic, b"traced", tags="A", keys="order-1"))
        await eventually(lambda: receiver.messages)
    assert [hook.dropped for hook in hooks] == [0, 0]

    async def all_there() -> list[TraceRecord]:
        records = await records_of(quick_cluster, admin, sent.msg_id)
        return records if len(records) == 3 else []

    records = await eventually(all_there)
    assert {type(record) for record in records} == {Pub, SubBefore, SubAfter}
    (pub,) = (record for record in records if isinstance(record, Pub))
    assert (pub.topic, pub.group, pub.tags, pub.keys) == (topic, f"p-{group}", "A", "order-1")
    assert (pub.offset_msg_id, pub.store_host) == (sent.offset_msg_id, quick_cluster.broker_addr)
    (message,) = await admin.query_message(
        quick_cluster.broker_addr, topic, sent.msg_id, unique=True
    )
    timeline = build_timeline(records, message)
    assert timeline.outcome is Outcome.CONSUMED
    assert [event.kind for event in timeline.events] == [
        EventKind.SENT,
        EventKind.STORED,
        EventKind.CONSUME_STARTED,
        EventKind.CONSUMED,
    ]


async def test_a_message_that_died(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic = await new_topic(1)
    settings = ConsumerSettings(
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=1,
        rebalance_interval_s=1,
    )
    hook = TraceHook()
    async with (
        Producer(f"p-{group}", quick_cluster.namesrv_addr, [TraceHook()]) as producer,
        Receiver(
            quick_cluster, group, topic, hooks=(hook,), settings=settings, fails=lambda _: True
        ) as receiver,
    ):
        sent = await producer.send(Message(topic, b"doomed"))
        await eventually(lambda: len(receiver.messages) == 2, timeout_s=60)

    async def all_there() -> list[TraceRecord]:
        records = await records_of(quick_cluster, admin, sent.msg_id)
        return records if len(records) == 5 else []

    records = await eventually(all_there)
    timeline = build_timeline(records, retry_times_max={group: 1})
    (journey,) = timeline.groups
    assert journey.outcome is Outcome.DEAD_LETTERED
    assert [(it.retry_times, it.state) for it in journey.attempts] == [
        (0, AttemptState.FAILED),
        (1, AttemptState.FAILED),
    ]
    first, second = journey.attempts
    assert first.end_ms is not None
    assert second.start_ms is not None
    assert second.start_ms - first.end_ms >= 900
