"""A metric over a time range: samples of the last day, minutes of the days before."""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from console.services.history.blocks import Values, reduced
from console.services.history.files import (
    SLOTS,
    open_reader,
)
from console.services.history.metrics import (
    DAY_MS,
    HOUR_MS,
    INTERVAL_MS,
    MINUTE_MS,
    SCOPES,
    Aggregate,
    Metric,
    Scope,
)
from console.services.history.rows import read_day, read_hour, read_slot

#: Maximum number of points of an answer.
POINTS_MAX: Final = 1_500


@dataclass(frozen=True, slots=True)
class Points:
    """A metric from `begin_ms`, a multiple of `step_ms`: one value per step, NaN for a gap.

    `values` has the aggregates that the metric keeps. `first_ms` is the time of the oldest sample
    of the name, `interval_ms` the time between two samples; None without any sample.
    """

    begin_ms: int
    step_ms: int
    values: Mapping[Aggregate, Values]
    first_ms: int | None
    interval_ms: int | None


def read_points(
    path: Path, metric: Metric, name: str, begin_ms: int, step_ms: int, count: int
) -> Points:
    """Read `count` points, at most POINTS_MAX. Steps below a minute are INTERVAL_MS times a divisor
    of 6, and have gaps where only minutes are kept. Raises sqlite3.Error.
    """
    values = {kept: np.full(count, np.nan) for kept in metric.kept}
    with open_reader(path) as db:
        found = None if db is None else _name(db, metric.scope, name)
        if db is None or found is None:
            return Points(begin_ms, step_ms, values, None, None)
        slot, first_ms, last_ms, interval_ms = found
        end_ms = begin_ms + step_ms * count
        newest = db.execute("SELECT max(at_ms) FROM frame WHERE metric = ?", (metric.number,))
        until_ms = max(last_ms, newest.fetchone()[0] or 0) + INTERVAL_MS
        # Before its first sample, the slot may have had another name.
        read_ms = max(begin_ms, first_ms)
        fine_ms = min(step_ms, MINUTE_MS)
        total = (end_ms - begin_ms) // fine_ms
        fine = {kept: np.full(total, np.nan) for kept in metric.kept}
        for piece_ms, piece in _pieces(db, metric, slot, read_ms, min(end_ms, until_ms), fine_ms):
            _copy(fine, (begin_ms, fine_ms), piece_ms, piece)
        first = max(0, (first_ms - begin_ms) // fine_ms)
        for kept, each in fine.items():
            each[: min(first, total)] = np.nan
            values[kept] = reduced(each, step_ms // fine_ms, (kept,))[kept]
    return Points(begin_ms, step_ms, values, first_ms, interval_ms)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Times of the oldest sample of a name and of the newest sample of its cluster, ms, and the
    interval between two samples of the name.
    """

    first_ms: int
    newest_ms: int
    interval_ms: int


def read_coverage(path: Path, scope: Scope, name: str) -> Coverage | None:
    """Return the times of the samples of a name; None without any. Raises sqlite3.Error."""
    with open_reader(path) as db:
        found = None if db is None else _name(db, scope, name)
        if db is None or found is None:
            return None
        _slot, first_ms, last_ms, interval_ms = found
        newest_ms = db.execute("SELECT max(at_ms) FROM frame").fetchone()[0] or last_ms
        return Coverage(first_ms, newest_ms, interval_ms)


def _name(db: sqlite3.Connection, scope: Scope, name: str) -> tuple[int, int, int, int] | None:
    """Return a name's slot, the times of its first and last samples, and its interval.

    The time of the last sample lacks the open hour.
    """
    row = db.execute(
        "SELECT slot, first_ms, last_ms FROM name WHERE scope = ? AND name = ?",
        (SCOPES[scope], name),
    ).fetchone()
    if row is None:
        return None
    pace = db.execute("SELECT interval_ms FROM pace WHERE scope = ?", (SCOPES[scope],)).fetchone()
    return *row, pace[0] if pace else INTERVAL_MS


def _pieces(
    db: sqlite3.Connection, metric: Metric, slot: int, begin_ms: int, end_ms: int, fine_ms: int
) -> Iterator[tuple[int, dict[Aggregate, Values]]]:
    """Yield begin and aggregates of the days, or hours, that overlap the range."""
    segment, row = divmod(slot, SLOTS)
    for day_ms in range(begin_ms // DAY_MS * DAY_MS, end_ms, DAY_MS):
        if fine_ms == MINUTE_MS and (day := read_day(db, metric, segment, day_ms)) is not None:
            yield day_ms, dict(zip(metric.kept, day[:, row], strict=True))
            continue
        first_ms = max(day_ms, begin_ms // HOUR_MS * HOUR_MS)
        for hour_ms in range(first_ms, min(day_ms + DAY_MS, end_ms), HOUR_MS):
            samples = _samples(db, metric, segment, row, hour_ms)
            yield hour_ms, reduced(samples, fine_ms // INTERVAL_MS, metric.kept)


def _samples(
    db: sqlite3.Connection, metric: Metric, segment: int, row: int, hour_ms: int
) -> Values:
    """Return the samples of a slot's hour."""
    packed = read_hour(db, metric, segment, hour_ms)
    late = read_slot(db, metric, segment * SLOTS + row, hour_ms)
    return late if packed is None else np.fmax(packed[row], late)


def _copy(
    fine: dict[Aggregate, Values],
    grid: tuple[int, int],
    piece_ms: int,
    piece: Mapping[Aggregate, Values],
) -> None:
    """Copy the part of a piece that is inside the range; `grid` is its begin and its step."""
    offset = (piece_ms - grid[0]) // grid[1]
    for kept, values in piece.items():
        target = fine[kept]
        begin, end = max(0, offset), min(target.size, offset + values.size)
        if begin < end:
            target[begin:end] = values[begin - offset : end - offset]
