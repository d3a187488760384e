"""A metric over a time range: samples of the last day, minutes of the days before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np

from console.services.history.blocks import Values, reduced
from console.services.history.metrics import (
    DAY_MS,
    HOUR_MS,
    INTERVAL_MS,
    MINUTE_MS,
    Aggregate,
    Metric,
    Scope,
)
from console.services.history.rows import unpacked_frames, unpacked_row
from console.services.history.store import SAMPLES_OF_HOUR, SLOTS, Place, Store

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
    place: Place, metric: Metric, name: str, begin_ms: int, step_ms: int, count: int
) -> Points:
    """Read `count` points, at most POINTS_MAX. Steps below a minute are INTERVAL_MS times a divisor
    of 6, and have gaps where only minutes are kept. Raises one of STORE_ERRORS.
    """
    values = {kept: np.full(count, np.nan) for kept in metric.kept}
    with place.reader() as store:
        found = None if store is None else _name(store, metric.scope, name)
        if store is None or found is None:
            return Points(begin_ms, step_ms, values, None, None)
        slot, first_ms, last_ms, interval_ms = found
        end_ms = begin_ms + step_ms * count
        until_ms = max(last_ms, store.newest_ms() or 0) + INTERVAL_MS
        # Before its first sample, the slot may have had another name.
        read_ms = max(begin_ms, first_ms)
        fine_ms = min(step_ms, MINUTE_MS)
        total = (end_ms - begin_ms) // fine_ms
        fine = {kept: np.full(total, np.nan) for kept in metric.kept}
        for piece_ms, piece in _pieces(
            store, metric, slot, read_ms, min(end_ms, until_ms), fine_ms
        ):
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


def read_coverage(place: Place, scope: Scope, name: str) -> Coverage | None:
    """Return the times of the samples of a name; None without any. Raises one of STORE_ERRORS."""
    with place.reader() as store:
        found = None if store is None else _name(store, scope, name)
        if store is None or found is None:
            return None
        _slot, first_ms, last_ms, interval_ms = found
        newest_ms = store.newest_ms() or last_ms
        return Coverage(first_ms, newest_ms, interval_ms)


def _name(store: Store, scope: Scope, name: str) -> tuple[int, int, int, int] | None:
    """Return a name's slot, the times of its first and last samples, and its interval.

    The time of the last sample lacks the open hour.
    """
    rows = store.names(scope, [name])
    if not rows:
        return None
    _name, slot, first_ms, last_ms = rows[0]
    return slot, first_ms, last_ms, store.pace_ms(scope) or INTERVAL_MS


def _pieces(
    store: Store, metric: Metric, slot: int, begin_ms: int, end_ms: int, fine_ms: int
) -> Iterator[tuple[int, dict[Aggregate, Values]]]:
    """Yield begin and aggregates of the days, and hours, that overlap the range."""
    segment, row = divmod(slot, SLOTS)
    first_day_ms = begin_ms // DAY_MS * DAY_MS
    days: set[int] = set()
    if fine_ms == MINUTE_MS:
        for _segment, day_ms, data in store.rows("day", metric, first_day_ms, end_ms, [segment]):
            days.add(day_ms)
            day = unpacked_row("day", metric, data)
            yield day_ms, dict(zip(metric.kept, day[:, row], strict=True))
    first_hour_ms = begin_ms // HOUR_MS * HOUR_MS
    while first_hour_ms // DAY_MS * DAY_MS in days:
        first_hour_ms = first_hour_ms // DAY_MS * DAY_MS + DAY_MS
    if first_hour_ms >= end_ms:
        return
    hours: dict[int, Values] = {}
    for _segment, hour_ms, data in store.rows("hour", metric, first_hour_ms, end_ms, [segment]):
        if hour_ms // DAY_MS * DAY_MS not in days:
            hours[hour_ms] = unpacked_row("hour", metric, data)[row]
    for at_ms, frame in unpacked_frames(store, metric, first_hour_ms, end_ms):
        hour_ms = at_ms // HOUR_MS * HOUR_MS
        is_packed = hour_ms // DAY_MS * DAY_MS in days
        if not is_packed and slot < frame.size and not isnan(frame[slot]):
            hour = hours.setdefault(hour_ms, np.full(SAMPLES_OF_HOUR, np.nan))
            hour[(at_ms - hour_ms) // INTERVAL_MS] = frame[slot]
    for hour_ms, samples in hours.items():
        yield hour_ms, reduced(samples, fine_ms // INTERVAL_MS, metric.kept)


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
