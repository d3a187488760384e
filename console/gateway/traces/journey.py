"""The journey of one message: its trace records, or why there are none, and what brokers know.

Clients write trace records into a topic of the cluster and key each of them with the message's
unique key, so one key query finds them all. No Spark is needed for one message.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.errors import NotThere
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, Desk
from console.gateway.messages.lookup import KEY_MESSAGES_MAX, TIMESTAMP_MAX, find
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef, read_slice, topic_queues
from console.gateway.messages.stored import MessageRef, brokers_of, stored_windows
from console.gateway.traces.evidence import Sightings, copies, sightings
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC, is_system_topic
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord, decode_trace
from trace.timeline import Timeline, build_timeline

#: Clients send their records in batches, every few seconds.
RECORDS_DELAY_MS = 15_000


class NoTrace(StrEnum):
    """Why a message has no trace."""

    #: No broker has the trace topic: traceTopicEnable is off, and no client made the topic.
    BROKER_OFF = "broker_off"
    #: The message and traces of its time are there: tracing is off in its clients.
    CLIENT_OFF = "client_off"
    #: The message is older than the trace records that the cluster still keeps.
    EXPIRED = "expired"
    #: A broker could not be asked for the records; `failures` says which and why.
    QUERY_FAILED = "query_failed"
    #: The message is seconds old; its records may still be with the clients.
    NOT_YET = "not_yet"
    #: Neither a record nor the message itself was found.
    UNKNOWN_MESSAGE = "unknown_message"


@dataclass(frozen=True, slots=True)
class Journey:
    """What is known of one message. `reason` is set when there is no trace record at all; what the
    brokers know stands in `sightings` and in the timeline all the same. The timeline is None when
    not even the message was found."""

    msg_id: str
    timeline: Timeline | None
    records: tuple[TraceRecord, ...]
    broken_count: int
    reason: NoTrace | None
    is_cut: bool
    original: MessageRef | None
    sightings: Sightings

    @property
    def dead_letters(self) -> tuple[MessageRef, ...]:
        return self.sightings.dead_letters


@dataclass(frozen=True, slots=True)
class _Traced:
    """What the trace topic has about a message."""

    queues: tuple[QueueRef, ...] = ()
    records: tuple[TraceRecord, ...] = ()
    broken_count: int = 0
    is_cut: bool = False
    failures: tuple[BrokerFailure, ...] = ()


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def journey(
    desk: Desk, msg_id: str, topic: str = "", trace_topic: str = TRACE_TOPIC
) -> Partial[Journey]:
    """The journey of the message with this unique key; `topic` helps when nothing is recorded."""
    traced = await _traced(desk, msg_id, trace_topic)
    original, failures = await _original_of(desk, msg_id, topic, traced.records)
    groups = {each.group for each in traced.records if isinstance(each, SubBefore | SubAfter)}
    seen = await sightings(desk, msg_id, original, groups, now_ms())
    first = original or next(iter(seen.value.copies), None)
    reason = None if traced.records else await _reason(desk, traced, first)
    timeline = build_timeline(
        traced.records,
        original.message if original else None,
        msg_id=msg_id,
        dead_letters=_times_by_group(seen.value.dead_letters),
    )
    found = Journey(
        msg_id,
        timeline if traced.records or first else None,
        traced.records,
        traced.broken_count,
        reason,
        traced.is_cut,
        original,
        seen.value,
    )
    return Partial(found, merge_failures(traced.failures, failures, seen.failures))


async def _traced(desk: Desk, msg_id: str, trace_topic: str) -> _Traced:
    try:
        queues = await topic_queues(desk, trace_topic)
    except NotThere:
        return _Traced()
    found, failures = await desk.each(
        brokers_of(queues),
        lambda broker: _trace_messages(desk, broker, trace_topic, msg_id),
        one_must_answer=False,
    )
    records, broken_count = _records([each for part in found.values() for each in part], msg_id)
    is_cut = any(len(part) >= KEY_MESSAGES_MAX for part in found.values())
    return _Traced(queues, tuple(records), broken_count, is_cut, failures)


async def _original_of(
    desk: Desk, msg_id: str, topic: str, records: Sequence[TraceRecord]
) -> tuple[MessageRef | None, tuple[BrokerFailure, ...]]:
    """The message as its producer sent it, in the topic that its traces or the caller name, or in
    any."""
    topics = sorted({each.topic for each in records if isinstance(each, Pub)} or {topic} - {""})
    refs, failures = await copies(desk, topics, msg_id)
    original = _original(refs)
    if original is not None or records:
        return original, failures
    try:
        answer = await desk.ask(find, msg_id)
    except NotThere:
        return None, failures
    same = [each for each in answer.value.refs if each.message.msg_id == msg_id]
    return _original(same), merge_failures(failures, answer.failures)


async def _reason(desk: Desk, traced: _Traced, first: MessageRef | None) -> NoTrace:
    """Nothing is recorded: why that is."""
    if traced.failures:
        return NoTrace.QUERY_FAILED
    if not traced.queues:
        return NoTrace.BROKER_OFF
    if first is None:
        return NoTrace.UNKNOWN_MESSAGE
    stored_ms = first.message.store_timestamp
    if now_ms() - stored_ms < RECORDS_DELAY_MS:
        return NoTrace.NOT_YET
    expired = stored_ms < await kept_since_ms(desk, traced.queues)
    return NoTrace.EXPIRED if expired else NoTrace.CLIENT_OFF


async def records_of(
    desk: Desk, msg_id: str
) -> tuple[tuple[TraceRecord, ...], tuple[BrokerFailure, ...]]:
    """The trace records of a message; none when the cluster keeps no traces."""
    traced = await _traced(desk, msg_id, TRACE_TOPIC)
    return traced.records, traced.failures


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


def _times_by_group(letters: Iterable[MessageRef]) -> dict[str, list[int]]:
    times: dict[str, list[int]] = {}
    for letter in letters:
        group = letter.message.topic.removeprefix(DLQ_PREFIX)
        times.setdefault(group, []).append(letter.message.store_timestamp)
    return times


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
    sent = [
        each
        for each in refs
        if not each.message.topic.startswith((DLQ_PREFIX, RETRY_PREFIX))
        and not is_system_topic(each.message.topic)
    ]
    return min(sent, key=lambda each: each.message.store_timestamp, default=None)
