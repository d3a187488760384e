"""A timeline as bars: where each stands and how wide it is, in per cent of the whole. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trace.timeline import Attempt, AttemptState, EventKind, Timeline

LANE_HEIGHT = 34
#: A bar of less than this could not be seen or pointed at.
WIDTH_MIN = 0.6
#: What is left free at the right, so that a bar at the end can be seen.
SPAN_SLACK = 1.02


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `left` and `width` in per cent of the drawing."""

    label: str
    tone: str
    left: float
    width: float
    start_ms: int
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the drawing: the producer (without a name), or one group."""

    name: str
    top: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    lanes: tuple[Lane, ...]
    begin_ms: int
    span_ms: int

    @property
    def height(self) -> int:
        return LANE_HEIGHT * len(self.lanes)


_TONES = {
    AttemptState.SUCCEEDED: "success",
    AttemptState.FAILED: "failure",
    AttemptState.UNFINISHED: "open",
}


def draw(timeline: Timeline) -> Drawing | None:
    """Lay out a timeline; None when nothing in it has a time."""
    moments = [(event.at_ms, event.at_ms + (event.cost_ms or 0)) for event in timeline.events]
    if not moments:
        return None
    begin_ms = min(begin for begin, _end in moments)
    span_ms = max(1, max(end for _begin, end in moments) - begin_ms)
    scale = _Scale(begin_ms, span_ms)
    rows = [("", _producer_bars(timeline, scale))]
    for group in timeline.groups:
        attempts = [each for each in group.attempts if each.start_ms is not None]
        rows.append((group.group, [_attempt_bar(each, scale) for each in attempts]))
    drawn = [(name, bars) for name, bars in rows if bars]
    lanes = (Lane(name, LANE_HEIGHT * at, tuple(bars)) for at, (name, bars) in enumerate(drawn))
    return Drawing(tuple(lanes), begin_ms, span_ms)


@dataclass(frozen=True, slots=True)
class _Scale:
    begin_ms: int
    span_ms: int

    def bar(self, label: str, tone: str, start_ms: int, duration_ms: int | None) -> Bar:
        whole = self.span_ms * SPAN_SLACK
        left = (start_ms - self.begin_ms) / whole * 100
        width = max(WIDTH_MIN, (duration_ms or 0) / whole * 100)
        left = min(left, 100 - WIDTH_MIN)
        return Bar(
            label, tone, round(left, 2), round(min(width, 100 - left), 2), start_ms, duration_ms
        )


def _producer_bars(timeline: Timeline, scale: _Scale) -> list[Bar]:
    tones = {EventKind.SENT: "send", EventKind.SEND_FAILED: "failure", EventKind.STORED: "store"}
    return [
        scale.bar(event.kind.value, tones[event.kind], event.at_ms, event.cost_ms)
        for event in timeline.events
        if event.kind in tones
    ]


def _attempt_bar(attempt: Attempt, scale: _Scale) -> Bar:
    number = "" if attempt.retry_times is None else str(attempt.retry_times)
    return scale.bar(number, _TONES[attempt.state], attempt.start_ms or 0, attempt.duration_ms)
