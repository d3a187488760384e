"""The journey of one message: its trace records, and why there may be none.

Clients write trace records into a topic of the cluster and key each of them with the message's
unique key, so one key query finds them all. No Spark is needed for one message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.gateway.answers import Partial
from console.gateway.desk import Desk
from console.gateway.errors import NotThere
from console.gateway.messages import LONG_MAX, MessageRef, by_key
from console.gateway.questions import question
from console.gateway.queue_slices import topic_queues
from core_broker.client import AdminClient
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC
from trace.codec import TraceRecord, decode_trace
from trace.timeline import Timeline, build_timeline

#: RocketMQ answers a key query with at most this many messages.
TRACE_MESSAGES_MAX = 64


class NoTrace(StrEnum):
    """Why a message has no trace."""

    TOPIC_MISSING = "topic_missing"
    """No broker has the trace topic: traceTopicEnable is off, and no client made the topic."""
    NOT_RECORDED = "not_recorded"
    """The topic is there, but holds nothing about the message: tracing is off at its clients, or
    its records have not arrived yet or have expired."""


@dataclass(frozen=True, slots=True)
class Journey:
    """What is known of one message. `missing` is set when there is no record at all."""

    msg_id: str
    timeline: Timeline | None
    records: tuple[TraceRecord, ...]
    broken_count: int
    missing: NoTrace | None
    truncated: bool


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def journey(
    desk: Desk, msg_id: str, topic: str = "", trace_topic: str = TRACE_TOPIC
) -> Partial[Journey]:
    """The journey of the message with this unique key; `topic` lets its store time be shown."""
    try:
        queues = await topic_queues(desk, trace_topic)
    except NotThere:
        return Partial(Journey(msg_id, None, (), 0, NoTrace.TOPIC_MISSING, truncated=False))
    brokers = sorted({queue.broker for queue in queues})
    found, failures = await desk.each(
        brokers, lambda broker: _trace_messages(desk.admin, broker.addr, trace_topic, msg_id)
    )
    messages = [message for group in found.values() for message in group]
    records, broken_count = _records(messages)
    truncated = any(len(group) >= TRACE_MESSAGES_MAX for group in found.values())
    stored = await _stored(desk, msg_id, topic)
    dead_groups = {
        ref.message.topic.removeprefix(DLQ_PREFIX)
        for ref in stored
        if ref.message.topic.startswith(DLQ_PREFIX)
    }
    first = next((ref.message for ref in stored if _is_original(ref.message.topic)), None)
    timeline = build_timeline(records, first, msg_id=msg_id, dead_letter_groups=dead_groups)
    missing = None if timeline.events and records else NoTrace.NOT_RECORDED
    return Partial(
        Journey(msg_id, timeline, tuple(records), broken_count, missing, truncated), failures
    )


async def _trace_messages(
    admin: AdminClient, addr: str, trace_topic: str, msg_id: str
) -> list[MessageExt]:
    return await admin.query_message(addr, trace_topic, msg_id, TRACE_MESSAGES_MAX, 0, LONG_MAX)


def _records(messages: list[MessageExt]) -> tuple[list[TraceRecord], int]:
    """Decode all; a message whose body does not unpack counts as one broken record."""
    records: list[TraceRecord] = []
    broken_count = 0
    for message in messages:
        try:
            decoded = decode_trace(message.decompressed_body())
        except ProtocolError:
            broken_count += 1
            continue
        records += decoded.records
        broken_count += decoded.broken_count
    return records, broken_count


async def _stored(desk: Desk, msg_id: str, topic: str) -> tuple[MessageRef, ...]:
    if not topic:
        return ()
    try:
        return (await desk.ask(by_key, topic, msg_id)).value
    except NotThere:
        return ()


def _is_original(topic: str) -> bool:
    return not topic.startswith((DLQ_PREFIX, RETRY_PREFIX))
