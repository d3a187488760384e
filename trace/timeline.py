"""Derive the timeline of one message from its trace records: events, times and outcome.

Pure. The trace page, the API and the checks of the Spark jobs share the derivation.

Properties of trace records, and how the derivation handles them:

- A retry has the ORIGINAL unique key, so the attempts of all groups share one message id.
  ``retry_times`` distinguishes the attempts, and the request id pairs a SubBefore with its
  SubAfter.
- A resent dead letter starts a new round of attempts at retry 0.
- Records get lost. A start without an end is an attempt with an unrecorded end; an end without a
  start has no retry count and is ordered by its time.
- Trace messages are delivered at least once: a repeated record is counted, but shown once.
- Clocks differ. An effect never starts before its cause: the derivation moves such an attempt to
  its cause and stores the shift in ``skew_ms``. The shift is a lower bound of the clock difference.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from trace.attempts import (
    RETRY_TIMES_MAX_DEFAULT,
    Attempt,
    AttemptState,
    Begin,
    End,
    dead_letter_index,
    elapsed_ms,
    estimated_store_ms,
    first_success_index,
    in_order,
    paired,
    settled,
)
from trace.codec import EndTransaction, Pub, Recall, SubAfter, SubBefore, TraceRecord


class EventKind(StrEnum):
    SENT = "sent"
    SEND_FAILED = "send_failed"
    STORED = "stored"
    TRANSACTION_ENDED = "transaction_ended"
    RECALLED = "recalled"
    CONSUME_STARTED = "consume_started"
    CONSUMED = "consumed"
    CONSUME_FAILED = "consume_failed"
    DEAD_LETTERED = "dead_lettered"


class Outcome(StrEnum):
    """Outcome of a message or a group. The last three values apply to messages only."""

    CONSUMED = "consumed"
    RETRYING = "retrying"
    DEAD_LETTERED = "dead_lettered"
    PENDING = "pending"
    SEND_FAILED = "send_failed"
    ROLLED_BACK = "rolled_back"
    RECALLED = "recalled"


class StoredMessage(Protocol):
    """The attributes of the stored message that the timeline reads; a MessageExt fits."""

    @property
    def msg_id(self) -> str: ...
    @property
    def store_timestamp(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Event:
    """A point of the timeline. ``at_ms`` is corrected; ``at_ms - skew_ms`` is the recorded time."""

    kind: EventKind
    at_ms: int
    group: str = ""
    retry_times: int | None = None
    cost_ms: int | None = None
    skew_ms: int = 0
    record: TraceRecord | None = None


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies, ms; None when a record is missing, never 0."""

    #: From the producer's call to the first start of a listener.
    send_to_consume_ms: int | None = None
    store_to_consume_ms: int | None = None
    #: From the producer's call to the end of the first success.
    end_to_end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupJourney:
    group: str
    attempts: tuple[Attempt, ...]
    outcome: Outcome
    latencies: Latencies

    @property
    def skew_ms(self) -> int:
        return max((attempt.skew_ms for attempt in self.attempts), default=0)


@dataclass(frozen=True, slots=True)
class Timeline:
    #: In order of corrected time; a cause precedes its effect.
    events: tuple[Event, ...]
    groups: tuple[GroupJourney, ...]
    #: The worst outcome of the groups, so that a success does not hide a dead letter.
    outcome: Outcome
    send_cost_ms: int | None
    duplicate_count: int

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(attempt for journey in self.groups for attempt in journey.attempts)

    @property
    def latencies(self) -> Mapping[str, Latencies]:
        return {journey.group: journey.latencies for journey in self.groups}


def build_timeline(
    records: Iterable[TraceRecord],
    message: StoredMessage | None = None,
    *,
    msg_id: str | None = None,
    retry_times_max: Mapping[str, int] | None = None,
    dead_letters: Mapping[str, Sequence[int]] | None = None,
) -> Timeline:
    """Derive the timeline of one message.

    ``msg_id`` or ``message`` selects the records of the message; without both, all records must
    belong to one message. ``retry_times_max`` holds the limits of groups other than 16;
    ``dead_letters`` holds the known store times of the message in the dead-letter topics of groups.
    """
    selected_id = msg_id or (message.msg_id if message else None)
    about, duplicate_count = _distinct(records, selected_id)
    sends = sorted((r for r in about if isinstance(r, Pub)), key=lambda r: r.timestamp_ms)
    sent_ms = min((send.timestamp_ms for send in sends), default=None)
    if message is not None:
        stored_ms: int | None = message.store_timestamp
    else:
        successes = (estimated_store_ms(s.timestamp_ms, s.cost_ms) for s in sends if s.success)
        stored_ms = next(successes, None)
    limits, letters = retry_times_max or {}, dead_letters or {}
    journeys = []
    for group, attempts in _attempts_by_group(about).items():
        died_ms = sorted(letters.get(group, ()))
        rounds = _rounds(attempts, sent_ms, died_ms)
        outcome = _group_outcome(rounds[-1], limits.get(group, RETRY_TIMES_MAX_DEFAULT))
        if len(died_ms) >= len(rounds) and outcome is not Outcome.CONSUMED:
            outcome = Outcome.DEAD_LETTERED
        settled = tuple(attempt for each in rounds for attempt in each)
        latencies = _latencies(settled, sent_ms, stored_ms)
        journeys.append(GroupJourney(group, settled, outcome, latencies))
    stored = [Event(EventKind.STORED, message.store_timestamp)] if message else []
    died = [
        Event(EventKind.DEAD_LETTERED, at_ms, group)
        for group in letters
        for at_ms in letters[group]
    ]
    return Timeline(
        events=_ordered(
            [*map(_send_event, sends), *stored, *_other_events(about, journeys), *died]
        ),
        groups=tuple(journeys),
        outcome=_message_outcome(about, sends, journeys),
        send_cost_ms=next((send.cost_ms for send in sends if send.success), None),
        duplicate_count=duplicate_count,
    )


def _distinct(records: Iterable[TraceRecord], msg_id: str | None) -> tuple[list[TraceRecord], int]:
    """The distinct records of the message. Of two SubAfter records of one request the first
    counts.
    """
    seen: dict[object, TraceRecord] = {}
    duplicate_count = 0
    for record in records:
        if msg_id is not None and not _is_about(record, msg_id):
            continue
        identity: object = record
        if isinstance(record, SubBefore | SubAfter):
            identity = type(record), record.request_id, record.msg_id
        duplicate_count += identity in seen
        seen.setdefault(identity, record)
    return list(seen.values()), duplicate_count


def _is_about(record: TraceRecord, msg_id: str) -> bool:
    if record.msg_id == msg_id:
        return True
    # The Pub of a Java batch holds the ids of all its messages, joined by commas.
    return isinstance(record, Pub) and msg_id in record.msg_id.split(",")


def _attempts_by_group(records: list[TraceRecord]) -> dict[str, list[Attempt]]:
    begins = {
        r.request_id: Begin(r.timestamp_ms, r.group, r.retry_times)
        for r in records
        if isinstance(r, SubBefore)
    }
    ends = {
        r.request_id: End(r.timestamp_ms, r.group, r.cost_ms, r.success, r.context_code)
        for r in records
        if isinstance(r, SubAfter)
    }
    groups: dict[str, list[Attempt]] = {}
    for request_id in begins | ends:
        attempt = paired(request_id, begins.get(request_id), ends.get(request_id))
        groups.setdefault(attempt.group, []).append(attempt)
    return groups


def _rounds(
    attempts: list[Attempt], sent_ms: int | None, died_ms: Sequence[int]
) -> list[tuple[Attempt, ...]]:
    """The attempts in rounds between dead letters. A round starts with an attempt at retry 0."""
    rounds, rest, cause_ms = [], attempts, sent_ms
    for at_ms in died_ms:
        firsts = (a.start_ms for a in rest if a.retry_times == 0 and (a.start_ms or 0) >= at_ms)
        began_ms = min((ms for ms in firsts if ms is not None), default=None)
        earlier = [a for a in rest if began_ms is None or (a.start_ms or 0) < began_ms]
        if began_ms is None or not earlier:
            continue
        rounds.append(_in_causal_order(earlier, cause_ms))
        rest, cause_ms = [a for a in rest if a not in earlier], at_ms
    return [*rounds, _in_causal_order(rest, cause_ms)]


def _in_causal_order(attempts: list[Attempt], sent_ms: int | None) -> tuple[Attempt, ...]:
    return tuple(settled(in_order(attempts), sent_ms))


def _group_outcome(attempts: tuple[Attempt, ...], retry_times_max: int) -> Outcome:
    """The outcome of the attempts with the highest retry count; earlier attempts do not matter."""
    if dead_letter_index(attempts, retry_times_max) is not None:
        return Outcome.DEAD_LETTERED
    level = attempts[-1].retry_times
    last = [attempt for attempt in attempts if attempt.retry_times == level]
    states = {attempt.state for attempt in last}
    if AttemptState.FAILED in states:
        return Outcome.RETRYING
    if AttemptState.SUCCEEDED in states:
        return Outcome.CONSUMED
    return Outcome.RETRYING if len(attempts) > len(last) else Outcome.PENDING


def _latencies(
    attempts: tuple[Attempt, ...], sent_ms: int | None, stored_ms: int | None
) -> Latencies:
    starts = [attempt.start_ms for attempt in attempts if attempt.start_ms is not None]
    success = first_success_index(attempts)
    first_start_ms = min(starts, default=None)
    first_end_ms = None if success is None else attempts[success].end_ms
    return Latencies(
        send_to_consume_ms=elapsed_ms(sent_ms, first_start_ms),
        store_to_consume_ms=elapsed_ms(stored_ms, first_start_ms),
        end_to_end_ms=elapsed_ms(sent_ms, first_end_ms),
    )


def _send_event(send: Pub) -> Event:
    kind = EventKind.SENT if send.success else EventKind.SEND_FAILED
    return Event(kind, send.timestamp_ms, send.group, cost_ms=send.cost_ms, record=send)


def _other_events(records: list[TraceRecord], journeys: list[GroupJourney]) -> Iterable[Event]:
    for record in records:
        if isinstance(record, EndTransaction):
            kind = EventKind.TRANSACTION_ENDED
            yield Event(kind, record.timestamp_ms, record.group, record=record)
        elif isinstance(record, Recall) and record.success:
            yield Event(EventKind.RECALLED, record.timestamp_ms, record.group, record=record)
    for journey in journeys:
        for attempt in journey.attempts:
            yield from _attempt_events(attempt)


def _attempt_events(attempt: Attempt) -> Iterable[Event]:
    group, retry_times, skew_ms = attempt.group, attempt.retry_times, attempt.skew_ms
    if attempt.start_ms is not None:
        kind = EventKind.CONSUME_STARTED
        yield Event(kind, attempt.start_ms, group, retry_times, skew_ms=skew_ms)
    if attempt.end_ms is not None:
        succeeded = attempt.state is AttemptState.SUCCEEDED
        kind = EventKind.CONSUMED if succeeded else EventKind.CONSUME_FAILED
        yield Event(kind, attempt.end_ms, group, retry_times, attempt.duration_ms, skew_ms)


def _ordered(events: list[Event]) -> tuple[Event, ...]:
    """Sort by time; the stable sort keeps causal order within a millisecond."""
    return tuple(sorted(events, key=lambda event: event.at_ms))


def _message_outcome(
    records: list[TraceRecord], sends: list[Pub], journeys: list[GroupJourney]
) -> Outcome:
    outcomes = {journey.outcome for journey in journeys}
    for worst in (Outcome.DEAD_LETTERED, Outcome.RETRYING, Outcome.PENDING, Outcome.CONSUMED):
        if worst in outcomes:
            return worst
    if any(isinstance(record, Recall) and record.success for record in records):
        return Outcome.RECALLED
    decisions = [r.transaction_state for r in records if isinstance(r, EndTransaction)]
    if "ROLLBACK_MESSAGE" in decisions:
        return Outcome.ROLLED_BACK
    if sends and not any(send.success for send in sends):
        return Outcome.SEND_FAILED
    return Outcome.PENDING
