"""Timeline of a journey: bars of a chart, in percent of the width, and steps of a table.

Pure. Start and end of an attempt are two events of the timeline, but one step.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from console.frame.time_axis import Gap, Scale, Tick, scale_of
from trace.attempts import Attempt, AttemptState
from trace.codec import ConsumeReturnType
from trace.timeline import Event, EventKind, Timeline

#: Height of a row, pixels: the name above the bars.
ROW_HEIGHT = 56
#: Minimum width of a bar, percent: narrower bars are invisible.
WIDTH_MIN = 0.5
#: Minimum distance of the numbers of two attempts, percent.
NUMBER_DISTANCE_MIN = 5.0


class BrokerEventKind(StrEnum):
    """Kinds of events from brokers and the ledger."""

    #: A dead letter was resent from the console.
    RESENT = "resent"
    #: A delayed message before its delivery time.
    DELAYED = "delayed"
    #: A failed delivery before its retry time.
    RETRY_WAITS = "retry_waits"
    #: A retry was stored in the retry topic.
    RETRY_GIVEN = "retry_given"
    #: A transaction half message, invisible to consumers.
    HALF = "half"
    #: The broker sent a transaction check to the producer.
    CHECKED = "checked"


_TONES = {
    EventKind.SENT: "send",
    EventKind.SEND_FAILED: "failure",
    EventKind.STORED: "store",
    EventKind.DEAD_LETTERED: "dead",
    BrokerEventKind.RESENT: "send",
    BrokerEventKind.DELAYED: "wait",
    BrokerEventKind.RETRY_WAITS: "wait",
    BrokerEventKind.RETRY_GIVEN: "store",
    BrokerEventKind.HALF: "store",
    BrokerEventKind.CHECKED: "check",
    AttemptState.SUCCEEDED: "success",
    AttemptState.FAILED: "failure",
    AttemptState.UNFINISHED: "open",
}
_ATTEMPT_STATES = frozenset(each.value for each in AttemptState)
_PRODUCER_KINDS = frozenset({EventKind.SENT, EventKind.SEND_FAILED, EventKind.STORED})
_ATTEMPT_KINDS = frozenset(
    {EventKind.CONSUME_STARTED, EventKind.CONSUMED, EventKind.CONSUME_FAILED}
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `left` and `width` in percent of the chart; `number` of an attempt, from 1, where
    it fits."""

    tone: str
    left: float
    width: float
    start_ms: int
    duration_ms: int | None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the chart: the producer (empty name) or one group."""

    name: str
    top: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    gaps: tuple[Gap, ...]
    tones: tuple[str, ...]
    begin_ms: int
    span_ms: int

    @property
    def height(self) -> int:
        return ROW_HEIGHT * len(self.rows)


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table. `kind` is an event kind or an attempt state."""

    kind: str
    tone: str
    at_ms: int | None
    after_ms: int | None
    group: str
    retry_times: int | None = None
    took_ms: int | None = None
    skew_ms: int = 0
    failure: str = ""
    dead_letter_id: str = ""
    by: str = ""
    until_ms: int | None = None

    @property
    def is_attempt(self) -> bool:
        """Whether the step is a delivery to a listener."""
        return self.kind in _ATTEMPT_STATES


@dataclass(frozen=True, slots=True)
class BrokerEvent:
    """One event from a broker or the ledger. `until_ms` is the end of a wait; `count` is the number
    of the retry or transaction check."""

    kind: BrokerEventKind
    at_ms: int
    group: str = ""
    count: int | None = None
    until_ms: int | None = None
    by: str = ""


def steps(
    timeline: Timeline,
    dead_letter_ids: Mapping[tuple[str, int], str],
    broker_events: Iterable[BrokerEvent] = (),
) -> list[Step]:
    """Steps in order of time. `dead_letter_ids` maps group and time to offset message ids.

    Attempts without a time come last.
    """
    broker_events = list(broker_events)
    moments = [event.at_ms for event in timeline.events] + [each.at_ms for each in broker_events]
    begin_ms = min(moments, default=0)
    known = [
        _event_step(event, begin_ms, dead_letter_ids)
        for event in timeline.events
        if event.kind not in _ATTEMPT_KINDS
    ]
    attempts = [_attempt_step(attempt, begin_ms) for attempt in timeline.attempts]
    known += [_broker_event_step(each, begin_ms) for each in broker_events]
    timed = [step for step in (*known, *attempts) if step.after_ms is not None]
    timed.sort(key=lambda step: step.after_ms or 0)
    return timed + [step for step in attempts if step.after_ms is None]


def _event_step(
    event: Event, begin_ms: int, dead_letter_ids: Mapping[tuple[str, int], str]
) -> Step:
    return Step(
        event.kind.value,
        _TONES.get(event.kind, ""),
        event.at_ms,
        event.at_ms - begin_ms,
        event.group,
        event.retry_times,
        event.cost_ms,
        event.skew_ms,
        dead_letter_id=dead_letter_ids.get((event.group, event.at_ms), ""),
    )


def _broker_event_step(each: BrokerEvent, begin_ms: int) -> Step:
    took_ms = None if each.until_ms is None else max(0, each.until_ms - each.at_ms)
    return Step(
        each.kind.value,
        _TONES.get(each.kind, ""),
        each.at_ms,
        each.at_ms - begin_ms,
        each.group,
        each.count,
        took_ms,
        by=each.by,
        until_ms=each.until_ms,
    )


def _attempt_step(attempt: Attempt, begin_ms: int) -> Step:
    at_ms = attempt.start_ms
    return Step(
        attempt.state.value,
        _TONES[attempt.state],
        at_ms,
        None if at_ms is None else at_ms - begin_ms,
        attempt.group,
        attempt.retry_times,
        attempt.duration_ms,
        attempt.skew_ms,
        failure=_failure(attempt),
    )


def _failure(attempt: Attempt) -> str:
    """The return type of a failed listener call; empty for an unknown type."""
    if attempt.state is not AttemptState.FAILED or attempt.context_code is None:
        return ""
    try:
        return ConsumeReturnType(attempt.context_code).name.lower()
    except ValueError:
        return ""


def draw(
    timeline: Timeline, broker_events: Iterable[BrokerEvent] = (), now_ms: int | None = None
) -> Drawing | None:
    """Lay out a timeline and broker events; None without any time. A pending wait ends at the
    current time."""
    broker_events = list(broker_events)
    ends = {each: _end_of(each, now_ms) for each in broker_events}
    moments = [
        (event.at_ms, event.at_ms + (event.cost_ms or 0))
        for event in timeline.events
        if event.kind not in _ATTEMPT_KINDS
    ]
    moments += [
        (each.start_ms, each.start_ms + (each.duration_ms or 0))
        for each in timeline.attempts
        if each.start_ms is not None
    ]
    # Only the ends of a wait are events: a long wait is compressed like a gap.
    moments += [(at_ms, at_ms) for each in broker_events for at_ms in (each.at_ms, ends[each])]
    if not moments:
        return None
    axis = scale_of(moments)
    scale = _Bars(axis)
    bars_by_row: dict[str, list[Bar]] = {"": []}
    bars_by_row[""] += [
        scale.event(each) for each in timeline.events if each.kind in _PRODUCER_KINDS
    ]
    for each in broker_events:
        bars_by_row.setdefault(each.group, []).append(scale.broker_event(each, ends[each]))
    for group in timeline.groups:
        bars = [scale.attempt(each) for each in group.attempts if each.start_ms is not None]
        bars_by_row.setdefault(group.group, []).extend(bars)
    for event in timeline.events:
        if event.kind is EventKind.DEAD_LETTERED:
            bars_by_row.setdefault(event.group, []).append(scale.event(event))
    drawn = [(name, bars) for name, bars in bars_by_row.items() if bars]
    rows = tuple(Row(name, ROW_HEIGHT * at, _spaced(bars)) for at, (name, bars) in enumerate(drawn))
    tones = dict.fromkeys(bar.tone for _name, bars in drawn for bar in bars)
    return Drawing(rows, axis.ticks(), axis.gaps, tuple(tones), axis.begin_ms, axis.span_ms)


def _end_of(each: BrokerEvent, now_ms: int | None) -> int:
    until_ms = each.at_ms if each.until_ms is None else each.until_ms
    return max(each.at_ms, until_ms if now_ms is None else min(until_ms, now_ms))


def _spaced(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """The bars of a row; a number too close to the number before is left out."""
    spaced: list[Bar] = []
    last = -NUMBER_DISTANCE_MIN
    for bar in sorted(bars, key=lambda each: (each.start_ms, each.duration_ms or 0)):
        if bar.number is not None and bar.left - last < NUMBER_DISTANCE_MIN:
            spaced.append(replace(bar, number=None))
            continue
        last = bar.left if bar.number is not None else last
        spaced.append(bar)
    return tuple(spaced)


@dataclass(frozen=True, slots=True)
class _Bars:
    scale: Scale

    def event(self, event: Event) -> Bar:
        return self._bar(_TONES[event.kind], event.at_ms, event.cost_ms)

    def attempt(self, attempt: Attempt) -> Bar:
        number = None if attempt.retry_times is None else attempt.retry_times + 1
        tone = _TONES[attempt.state]
        return replace(self._bar(tone, attempt.start_ms or 0, attempt.duration_ms), number=number)

    def broker_event(self, each: BrokerEvent, end_ms: int) -> Bar:
        length_ms = end_ms - each.at_ms
        return self._bar(_TONES[each.kind], each.at_ms, length_ms or None)

    def _bar(self, tone: str, start_ms: int, duration_ms: int | None) -> Bar:
        begin = self.scale.place(start_ms)
        left = min(begin, 100 - WIDTH_MIN)
        length = self.scale.place(start_ms + (duration_ms or 0)) - begin
        width = min(max(WIDTH_MIN, length), 100 - left)
        return Bar(tone, round(left, 2), round(width, 2), start_ms, duration_ms)
