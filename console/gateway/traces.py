"""The journey of one message: its trace records, and why there may be none.

Clients write trace records into a topic of the cluster and key each of them with the message's
unique key, so one key query finds them all. No Spark is needed for one message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from console.gateway.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.desk import BrokerRef, Desk
from console.gateway.errors import NotThere
from console.gateway.finding import KEY_MESSAGES_MAX, TIMESTAMP_MAX, by_key, find
from console.gateway.messages import MessageRef, brokers_of, stored_windows
from console.gateway.newest_first import Window
from console.gateway.questions import question
from console.gateway.queue_slices import QueueRef, read_slice, topic_queues
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC, dlq_topic
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord, decode_trace
from trace.timeline import Timeline, build_timeline

#: Clients send their records in batches, every few seconds.
RECORDS_DELAY_MS = 15_000
#: Groups of one message whose dead letters are looked for.
GROUPS_MAX = 50


class NoTrace(StrEnum):
    """Why a message has no trace."""

    TOPIC_MISSING = "topic_missing"
    """No broker has the trace topic: traceTopicEnable is off, and no client made the topic."""
    NOT_YET = "not_yet"
    """The message is seconds old; its records may still be with the clients."""
    EXPIRED = "expired"
    """The message is older than the trace records that the cluster still keeps."""
    NOT_RECORDED = "not_recorded"
    """The message and traces of its time are there: tracing is off in its clients."""
    UNKNOWN_MESSAGE = "unknown_message"
    """Neither a record nor the message itself was found."""


@dataclass(frozen=True, slots=True)
class Journey:
    """What is known of one message. `missing` is set when there is no record at all."""

    msg_id: str
    timeline: Timeline | None
    records: tuple[TraceRecord, ...]
    broken_count: int
    missing: NoTrace | None
    is_cut: bool
    original: MessageRef | None
    dead_letters: tuple[MessageRef, ...]


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def journey(
    desk: Desk, msg_id: str, topic: str = "", trace_topic: str = TRACE_TOPIC
) -> Partial[Journey]:
    """The journey of the message with this unique key; `topic` helps when nothing is recorded."""
    try:
        queues = await topic_queues(desk, trace_topic)
    except NotThere:
        return Partial(_without_records(msg_id, NoTrace.TOPIC_MISSING))
    found, failures = await desk.each(
        brokers_of(queues), lambda broker: _trace_messages(desk, broker, trace_topic, msg_id)
    )
    messages = [message for group in found.values() for message in group]
    records, broken_count = _records(messages, msg_id)
    if not records:
        explained = await _explained(desk, msg_id, topic, queues)
        value = replace(explained.value, broken_count=broken_count)
        return Partial(value, merge_failures(failures, explained.failures))
    topics = sorted({each.topic for each in records if isinstance(each, Pub)} or {topic})
    stored, stored_failures = await _stored_in(desk, topics, msg_id)
    letters, letter_failures = await _dead_letters(desk, records, msg_id)
    original = _original(stored)
    timeline = build_timeline(
        records,
        original.message if original else None,
        msg_id=msg_id,
        dead_letters=_times_by_group(letters),
    )
    known = Journey(
        msg_id,
        timeline,
        tuple(records),
        broken_count,
        None,
        any(len(group) >= KEY_MESSAGES_MAX for group in found.values()),
        original,
        letters,
    )
    return Partial(known, merge_failures(failures, stored_failures, letter_failures))


async def records_of(
    desk: Desk, msg_id: str, trace_topic: str = TRACE_TOPIC
) -> tuple[list[TraceRecord], tuple[BrokerFailure, ...]]:
    """The trace records of a message; none when the cluster keeps no traces."""
    try:
        queues = await topic_queues(desk, trace_topic)
    except NotThere:
        return [], ()
    found, failures = await desk.each(
        brokers_of(queues),
        lambda broker: _trace_messages(desk, broker, trace_topic, msg_id),
        one_must_answer=False,
    )
    records, _broken = _records([each for group in found.values() for each in group], msg_id)
    return records, failures


async def _trace_messages(
    desk: Desk, broker: BrokerRef, trace_topic: str, msg_id: str
) -> list[MessageExt]:
    return await desk.admin.query_message(
        broker.addr, trace_topic, msg_id, KEY_MESSAGES_MAX, 0, TIMESTAMP_MAX
    )


def _records(messages: Iterable[MessageExt], msg_id: str) -> tuple[list[TraceRecord], int]:
    """The message's records; a trace message that does not unpack counts as one broken record."""
    records: list[TraceRecord] = []
    broken_count = 0
    for message in messages:
        try:
            decoded = decode_trace(message.decompressed_body())
        except ProtocolError:
            broken_count += 1
            continue
        # A trace message holds records of many messages, and a batch's Pub has all its ids.
        records += [each for each in decoded.records if msg_id in each.msg_id.split(",")]
        broken_count += decoded.broken_count
    return records, broken_count


async def _dead_letters(
    desk: Desk, records: Iterable[TraceRecord], msg_id: str
) -> tuple[tuple[MessageRef, ...], tuple[BrokerFailure, ...]]:
    """The message in the dead-letter topics of the groups that it was delivered to."""
    groups = {each.group for each in records if isinstance(each, SubBefore | SubAfter)} - {""}
    return await _stored_in(desk, [dlq_topic(group) for group in sorted(groups)], msg_id)


async def _stored_in(
    desk: Desk, topics: Sequence[str], msg_id: str
) -> tuple[tuple[MessageRef, ...], tuple[BrokerFailure, ...]]:
    """The message as the topics hold it; a topic that is gone holds nothing."""

    async def look(topic: str) -> Partial[tuple[MessageRef, ...]]:
        try:
            answer = await desk.ask(by_key, topic, msg_id)
        except NotThere:
            return Partial(())
        return Partial(answer.value.refs, answer.failures)

    parts = await asyncio.gather(*(look(each) for each in topics[:GROUPS_MAX] if each))
    refs = tuple(ref for part in parts for ref in part.value if ref.message.msg_id == msg_id)
    return refs, merge_failures(*(part.failures for part in parts))


def _times_by_group(letters: Iterable[MessageRef]) -> dict[str, list[int]]:
    times: dict[str, list[int]] = {}
    for letter in letters:
        group = letter.message.topic.removeprefix(DLQ_PREFIX)
        times.setdefault(group, []).append(letter.message.store_timestamp)
    return times


async def _explained(
    desk: Desk,
    msg_id: str,
    topic: str,
    queues: Sequence[QueueRef],
) -> Partial[Journey]:
    """Nothing is recorded: find the message, and say why that may be."""
    try:
        answer = await desk.ask(find, msg_id, topic)
    except NotThere:
        return Partial(_without_records(msg_id, NoTrace.UNKNOWN_MESSAGE))
    original = _original(answer.value.refs)
    if original is None:
        return Partial(_without_records(msg_id, NoTrace.UNKNOWN_MESSAGE), answer.failures)
    stored_ms = original.message.store_timestamp
    reason = NoTrace.NOT_YET
    if now_ms() - stored_ms >= RECORDS_DELAY_MS:
        expired = stored_ms < await kept_since_ms(desk, queues)
        reason = NoTrace.EXPIRED if expired else NoTrace.NOT_RECORDED
    return Partial(_without_records(msg_id, reason, original), answer.failures)


async def kept_since_ms(desk: Desk, queues: Sequence[QueueRef]) -> int:
    """Since when nothing of the queues has been deleted; 0 when nothing ever was."""

    async def first_ms(window: Window) -> int:
        if window.begin == 0:
            return 0
        first = await read_slice(desk, window.queue, window.begin, window.begin + 1)
        return first.messages[0].store_timestamp if first.messages else now_ms()

    async def ask(broker: BrokerRef) -> list[int]:
        windows = await stored_windows(desk, [each for each in queues if each.broker == broker])
        return await asyncio.gather(*(first_ms(each) for each in windows))

    found, _failures = await desk.each(brokers_of(queues), ask, one_must_answer=False)
    return max((ms for times in found.values() for ms in times), default=0)


def _original(refs: Iterable[MessageRef]) -> MessageRef | None:
    """The message as its producer sent it: the oldest that no group put somewhere."""
    sent = [each for each in refs if not each.message.topic.startswith((DLQ_PREFIX, RETRY_PREFIX))]
    return min(sent, key=lambda each: each.message.store_timestamp, default=None)


def _without_records(msg_id: str, reason: NoTrace, original: MessageRef | None = None) -> Journey:
    return Journey(msg_id, None, (), 0, reason, is_cut=False, original=original, dead_letters=())
