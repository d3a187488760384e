"""The journey of a message: trace records or the reason of a missing trace, and evidence.

Clients write trace records to a topic of the cluster, keyed by the unique key of the message. A key
query finds the records of a message without Spark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.lookup import find
from console.gateway.messages.masks import HIDDEN, NO_MASK, Mask
from console.gateway.messages.stored import MessageRef
from console.gateway.traces.evidence import (
    BrokerEvidence,
    DeliveryState,
    GroupDeliveryState,
    copies,
    evidence,
)
from console.gateway.traces.records import TraceQuery, kept_since_ms, query_traces
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC, is_system_topic
from trace.codec import EndTransaction, Pub, SubAfter, SubBefore, TraceRecord
from trace.timeline import Outcome, Timeline, build_timeline

#: Maximum delay of trace records, milliseconds: clients send them in batches, every few seconds.
RECORDS_DELAY_MS = 15_000


class NoTrace(StrEnum):
    """The reason of a missing trace."""

    #: No broker has the trace topic: traceTopicEnable is off, and no client created the topic.
    BROKER_OFF = "broker_off"
    #: The cluster has traces of the message's time: tracing is off in the message's clients.
    CLIENT_OFF = "client_off"
    #: The message is older than the oldest trace record of the cluster.
    EXPIRED = "expired"
    #: A query for the records failed; `failures` has broker and reason.
    QUERY_FAILED = "query_failed"
    #: The message is seconds old; clients may not have sent the records.
    NOT_YET = "not_yet"
    #: Neither a record nor the message exists.
    UNKNOWN_MESSAGE = "unknown_message"


@dataclass(frozen=True, slots=True)
class Journey:
    """The journey of one message. `reason` is set without trace records; `evidence` and the
    timeline hold broker-side events in any case. The timeline is None for an unknown message."""

    msg_id: str
    timeline: Timeline | None
    records: tuple[TraceRecord, ...]
    broken_count: int
    reason: NoTrace | None
    is_cut: bool
    original: MessageRef | None
    evidence: BrokerEvidence

    @property
    def standing(self) -> GroupDeliveryState | None:
        """The state by brokers, for a message without a traced delivery; None otherwise.

        A message that no consumer gets, or that all groups have passed, is not pending.
        """
        if self.timeline is None or self.timeline.outcome is not Outcome.PENDING:
            return None
        if self.timeline.groups:
            return None
        found = {each.standing: each for each in self.evidence.groups}
        if not found or not set(found) <= {DeliveryState.CONSUMED, DeliveryState.FILTERED}:
            return None
        return found.get(DeliveryState.CONSUMED) or found[DeliveryState.FILTERED]

    @property
    def dead_letters(self) -> tuple[MessageRef, ...]:
        return self.evidence.dead_letters


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def journey(
    session: ClusterSession,
    msg_id: str,
    topic: str = "",
    trace_topic: str = TRACE_TOPIC,
    mask: Mask = NO_MASK,
) -> Partial[Journey]:
    """The journey of the message with this unique key; `topic` helps without traces."""
    traced = await query_traces(session, msg_id, trace_topic)
    original, failures = await _original_of(session, msg_id, topic, traced.records)
    groups = {each.group for each in traced.records if isinstance(each, SubBefore | SubAfter)}
    seen = await evidence(session, msg_id, original, groups, now_ms())
    first = original or next(iter(seen.value.copies), None)
    reason = None if traced.records else await _reason(session, traced, first)
    timeline = build_timeline(
        traced.records,
        original.message if original else None,
        msg_id=msg_id,
        dead_letters=_times_by_group(seen.value.dead_letters),
    )
    found = Journey(
        msg_id,
        timeline if traced.records or first else None,
        _seen_through(mask, traced.records, original),
        traced.broken_count,
        reason,
        traced.is_cut,
        original and original.seen_through(mask),
        seen.value,
    )
    return Partial(found, merge_failures(traced.failures, failures, seen.failures))


def _seen_through(
    mask: Mask, records: tuple[TraceRecord, ...], original: MessageRef | None
) -> tuple[TraceRecord, ...]:
    """Return the records without keys and tags that the mask hides; deliveries name no topic."""
    topics = {each.topic for each in records if isinstance(each, Pub | EndTransaction)}
    topics |= {original.message.topic} if original else set()
    named = topics or {TRACE_TOPIC}
    fields = ["keys"] if any(map(mask.keys_hidden, named)) else []
    fields += ["tags"] if any(map(mask.tags_hidden, named)) else []
    return tuple(_without(each, fields) for each in records)


def _without(record: TraceRecord, fields: Sequence[str]) -> TraceRecord:
    hidden = {name: HIDDEN for name in fields if getattr(record, name, "")}
    return msgspec.structs.replace(record, **hidden) if hidden else record


async def _original_of(
    session: ClusterSession, msg_id: str, topic: str, records: Sequence[TraceRecord]
) -> tuple[MessageRef | None, tuple[BrokerFailure, ...]]:
    """Return the message from the topic of its traces, the caller's topic, or any topic."""
    topics = sorted({each.topic for each in records if isinstance(each, Pub)} or {topic} - {""})
    refs, failures = await copies(session, topics, msg_id)
    original = _original(refs)
    if original is not None or records:
        return original, failures
    try:
        answer = await session.ask(find, msg_id)
    except NotFound:
        return None, failures
    same = [each for each in answer.value.refs if each.message.msg_id == msg_id]
    return _original(same), merge_failures(failures, answer.failures)


async def _reason(session: ClusterSession, traced: TraceQuery, first: MessageRef | None) -> NoTrace:
    """Return the reason of missing trace records."""
    if traced.failures:
        return NoTrace.QUERY_FAILED
    if not traced.queues:
        return NoTrace.BROKER_OFF
    if first is None:
        return NoTrace.UNKNOWN_MESSAGE
    stored_ms = first.message.store_timestamp
    if now_ms() - stored_ms < RECORDS_DELAY_MS:
        return NoTrace.NOT_YET
    expired = stored_ms < await kept_since_ms(session, traced.queues)
    return NoTrace.EXPIRED if expired else NoTrace.CLIENT_OFF


def _times_by_group(letters: Iterable[MessageRef]) -> dict[str, list[int]]:
    times: dict[str, list[int]] = {}
    for letter in letters:
        group = letter.message.topic.removeprefix(DLQ_PREFIX)
        times.setdefault(group, []).append(letter.message.store_timestamp)
    return times


def _original(refs: Iterable[MessageRef]) -> MessageRef | None:
    """Return the producer's message: the oldest one outside retry, DLQ and system topics."""
    sent = [
        each
        for each in refs
        if not each.message.topic.startswith((DLQ_PREFIX, RETRY_PREFIX))
        and not is_system_topic(each.message.topic)
    ]
    return min(sent, key=lambda each: each.message.store_timestamp, default=None)
