"""A time axis for pictures: linear, with long times without an event compressed. Pure.

The attempts of a message take milliseconds, retries follow after minutes; jobs take seconds, and
the next one runs on the next day: such events are invisible lines on one linear axis. A gap is
compressed while the gaps of GAP_RATIO_MIN and more take most of the axis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

#: Ratio of a gap to the axis from which the gap may be compressed.
GAP_RATIO_MIN: Final = 0.1
#: Ratio of such gaps to the axis from which they are compressed.
GAPS_RATIO_MIN: Final = 0.8
GAPS_MAX: Final = 8
#: Width of a compressed gap, and maximum width of all, percent.
GAP_WIDTH: Final = 9.0
GAPS_WIDTH_MAX: Final = 54.0
#: Percent of the axis right of the last event.
SLACK_WIDTH: Final = 2.0
#: Minimum distance of two ticks, percent: their labels do not touch at 390 px.
TICK_DISTANCE_MIN: Final = 18.0
TICKS: Final = 5

_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
_TICK_STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(number * _SECOND_MS for number in (1, 2, 5, 10, 20, 30)),
    *(number * _MINUTE_MS for number in (1, 2, 5, 10, 20, 30)),
    *(number * _HOUR_MS for number in (1, 2, 4, 8, 12)),
    *(number * _DAY_MS for number in (1, 2, 5, 10, 30)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled time after the begin of the axis; `left` in percent of the axis.

    The label begins at the tick, and ends there near the end of the axis (`at_end`).
    """

    left: float
    after_ms: int
    at_end: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """A compressed time without an event; `left` and `width` in percent of the axis."""

    left: float
    width: float
    duration_ms: int


@dataclass(frozen=True, slots=True)
class _Piece:
    begin_ms: int
    end_ms: int
    left: float
    width: float
    is_gap: bool


@dataclass(frozen=True, slots=True)
class Scale:
    """Places times (ms after 1970) on the axis."""

    begin_ms: int
    end_ms: int
    pieces: tuple[_Piece, ...]

    @property
    def span_ms(self) -> int:
        return max(1, self.end_ms - self.begin_ms)

    def place(self, at_ms: int) -> float:
        """Percent of the axis, 0 to 100."""
        for piece in self.pieces:
            if at_ms <= piece.end_ms:
                length_ms = max(1, piece.end_ms - piece.begin_ms)
                ratio = max(0, at_ms - piece.begin_ms) / length_ms
                return piece.left + ratio * piece.width
        return 100.0 - SLACK_WIDTH

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(
            Gap(round(piece.left, 2), round(piece.width, 2), piece.end_ms - piece.begin_ms)
            for piece in self.pieces
            if piece.is_gap
        )

    def ticks(
        self,
        zero_ms: int | None = None,
        *,
        distance: float = TICK_DISTANCE_MIN,
        step_min_ms: int = 1,
    ) -> tuple[Tick, ...]:
        """Labelled times: the begin of each piece, and round durations after `zero_ms`.

        `zero_ms` is the begin of the axis by default. A label is at most `distance` percent wide;
        labels do not overlap.
        """
        zero_ms = self.begin_ms if zero_ms is None else zero_ms
        shown = [piece for piece in self.pieces if not piece.is_gap]
        linear_ms = max(1, sum(piece.end_ms - piece.begin_ms for piece in shown))
        step_ms = next((each for each in _TICK_STEPS_MS if each * TICKS >= linear_ms), linear_ms)
        step_ms = max(step_ms, step_min_ms)
        found: list[Tick] = []
        for piece in shown:
            first_ms, last_ms = piece.begin_ms - zero_ms, piece.end_ms - zero_ms
            next_ms = (first_ms // step_ms + 1) * step_ms
            for after_ms in (first_ms, *range(next_ms, last_ms + 1, step_ms)):
                at_ms = zero_ms + after_ms
                left = round(self.place(at_ms), 2)
                at_end = left > 100 - distance
                apart = 2 * distance if at_end else distance
                if not found or left - found[-1].left >= apart:
                    found.append(Tick(left, at_ms - self.begin_ms, at_end))
        return tuple(found)


def scale_of(busy: Iterable[tuple[int, int]]) -> Scale:
    """The axis for the times of events: (begin, end) pairs, at least one."""
    spans = sorted(busy)
    begin_ms, end_ms = spans[0][0], max(max(span) for span in spans)
    gaps = _compressed(_gaps(spans), max(1, end_ms - begin_ms))
    linear_ms = max(1, end_ms - begin_ms - sum(end - begin for begin, end in gaps))
    gap_width = min(GAP_WIDTH, GAPS_WIDTH_MAX / len(gaps)) if gaps else 0.0
    per_ms = (100 - SLACK_WIDTH - gap_width * len(gaps)) / linear_ms
    pieces: list[_Piece] = []
    left, at_ms = 0.0, begin_ms
    for gap_begin_ms, gap_end_ms in gaps:
        width = (gap_begin_ms - at_ms) * per_ms
        pieces.append(_Piece(at_ms, gap_begin_ms, left, width, is_gap=False))
        pieces.append(_Piece(gap_begin_ms, gap_end_ms, left + width, gap_width, is_gap=True))
        left, at_ms = left + width + gap_width, gap_end_ms
    pieces.append(_Piece(at_ms, end_ms, left, (end_ms - at_ms) * per_ms, is_gap=False))
    return Scale(begin_ms, end_ms, tuple(pieces))


def _gaps(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Times between the spans, in order."""
    merged = [spans[0]]
    for begin_ms, end_ms in spans[1:]:
        if begin_ms <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_ms))
        else:
            merged.append((begin_ms, end_ms))
    return [(before[1], after[0]) for before, after in pairwise(merged)]


def _compressed(gaps: Sequence[tuple[int, int]], span_ms: int) -> list[tuple[int, int]]:
    """The gaps to compress, in order of time."""
    chosen: set[tuple[int, int]] = set()
    rest_ms = span_ms
    while True:
        left = [gap for gap in gaps if gap not in chosen]
        long = [gap for gap in left if gap[1] - gap[0] >= GAP_RATIO_MIN * rest_ms]
        long_ms = sum(end - begin for begin, end in long)
        if not long or long_ms < GAPS_RATIO_MIN * rest_ms or len(chosen) + len(long) > GAPS_MAX:
            return sorted(chosen)
        chosen.update(long)
        rest_ms -= long_ms
