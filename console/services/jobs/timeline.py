"""Jobs as bars on a time axis, for the list of jobs (`drawn.py` chooses them). Pure.

    Refresh analytics      ▒▒███████████        ▒████     31 %
                           wait  run                 running now
    Export                    ████████

A row has the jobs of one kind; jobs of a kind that run at the same time have rows of their own. The
dark part of a run is its progress.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from console.frame.formats import SECOND_MS
from console.frame.time_axis import Gap, Scale, Tick, scale_of
from console.services.jobs.models import Job
from console.services.jobs.states import AT_WORK

#: Heights of a row's title and of its bars, pixels.
TITLE_HEIGHT: Final = 20
BARS_HEIGHT: Final = 20
#: Minimum width of a run, percent: narrower bars are invisible.
WIDTH_MIN: Final = 0.8
#: Minimum distance of two ticks, percent: date and time do not touch at 390 px.
TICK_DISTANCE_MIN: Final = 24.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A job: the wait in the queue, the run, and its progress; places in percent of the axis."""

    job: Job
    left: float
    wait: float
    run: float
    done: float

    @property
    def run_left(self) -> float:
        return round(self.left + self.wait, 2)

    @property
    def right(self) -> float:
        return round(self.run_left + self.run, 2)

    @property
    def is_at_work(self) -> bool:
        return self.job.state in AT_WORK


@dataclass(frozen=True, slots=True)
class Row:
    """Jobs of one kind that do not overlap in time; the first row of a kind has a title."""

    first: bool
    top: int
    bars: tuple[Bar, ...]

    @property
    def bars_top(self) -> int:
        return self.top + (TITLE_HEIGHT if self.first else 0)


@dataclass(frozen=True, slots=True)
class Timeline:
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    gaps: tuple[Gap, ...]
    states: tuple[str, ...]
    begin_ms: int
    end_ms: int

    @property
    def height(self) -> int:
        return self.rows[-1].bars_top + BARS_HEIGHT


def timeline_of(jobs: Iterable[Job], now_ms: int, midnight_ms: int = 0) -> Timeline | None:
    """Return the picture of the jobs; None without a job. Ticks are round times after midnight."""
    chosen = sorted(jobs, key=lambda job: (job.created_ms, job.pk))
    if not chosen:
        return None
    scale = scale_of((job.created_ms, _end_ms(job, now_ms)) for job in chosen)
    rows: list[Row] = []
    top = 0
    for _kind, of_kind in groupby(sorted(chosen, key=lambda job: job.kind), lambda job: job.kind):
        for number, row in enumerate(_side_by_side(of_kind, now_ms)):
            bars = tuple(_bar(scale, job, now_ms) for job in row)
            rows.append(Row(number == 0, top, bars))
            top = rows[-1].bars_top + BARS_HEIGHT
    states = dict.fromkeys(job.state for job in chosen)
    ticks = scale.ticks(midnight_ms, distance=TICK_DISTANCE_MIN, step_min_ms=SECOND_MS)
    return Timeline(tuple(rows), ticks, scale.gaps, tuple(states), scale.begin_ms, scale.end_ms)


def _end_ms(job: Job, now_ms: int) -> int:
    return max(job.created_ms, now_ms if job.finished_ms is None else job.finished_ms)


def _side_by_side(jobs: Iterable[Job], now_ms: int) -> Sequence[Sequence[Job]]:
    """Put jobs in order of their begin into the fewest rows without an overlap."""
    rows: list[list[Job]] = []
    for job in jobs:
        row = next((row for row in rows if _end_ms(row[-1], now_ms) <= job.created_ms), None)
        if row is None:
            rows.append([job])
        else:
            row.append(job)
    return rows


def _bar(scale: Scale, job: Job, now_ms: int) -> Bar:
    end_ms = _end_ms(job, now_ms)
    begin = min(scale.place(job.created_ms), 100 - WIDTH_MIN)
    end = scale.place(end_ms)
    if job.started_ms is None:
        return Bar(job, round(begin, 2), round(max(WIDTH_MIN, end - begin), 2), 0, 0)
    wait = max(0.0, scale.place(min(job.started_ms, end_ms)) - begin)
    run = max(WIDTH_MIN, end - begin - wait)
    done = run * min(100.0, max(0.0, job.percent)) / 100
    return Bar(job, round(begin, 2), round(wait, 2), round(run, 2), round(done, 2))
