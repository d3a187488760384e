"""The last samples of all names of a metric, for the rules of alarms."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from console.services.history.blocks import Damaged, Values, unpack
from console.services.history.files import SAMPLES_OF_HOUR, SLOTS
from console.services.history.metrics import HOUR_MS, INTERVAL_MS, SCOPES, Metric


@dataclass(frozen=True, slots=True)
class Window:
    """Samples of all slots: `values` has a row per slot and a column per INTERVAL_MS.

    The last column is of `newest_ms`; `interval_ms` is the time between two samples of a name.
    """

    slots: Mapping[str, int]
    values: Values
    newest_ms: int
    interval_ms: int


def read_window(
    db: sqlite3.Connection, metric: Metric, now_ms: int, duration_ms: int, intervals_min: int
) -> Window | None:
    """Return the samples of the last `duration_ms`, and at least of `intervals_min` intervals of
    the metric. None without a name or a sample. Raises sqlite3.Error.
    """
    scope = SCOPES[metric.scope]
    rows = db.execute("SELECT name, slot, first_ms FROM name WHERE scope = ?", (scope,)).fetchall()
    pace = db.execute("SELECT interval_ms FROM pace WHERE scope = ?", (scope,)).fetchone()
    interval_ms = pace[0] if pace else INTERVAL_MS
    end_ms = now_ms // INTERVAL_MS * INTERVAL_MS + INTERVAL_MS
    begin_ms = end_ms - max(duration_ms, intervals_min * interval_ms) // INTERVAL_MS * INTERVAL_MS
    if not rows:
        return None
    values = np.full(
        (max(slot for _name, slot, _first_ms in rows) + 1, (end_ms - begin_ms) // INTERVAL_MS),
        np.nan,
    )
    for hour_ms in range(begin_ms // HOUR_MS * HOUR_MS, end_ms, HOUR_MS):
        _copy_hour(db, metric, hour_ms, values, begin_ms)
    frames = db.execute(
        "SELECT at_ms, data FROM frame WHERE metric = ? AND at_ms >= ? AND at_ms < ?",
        (metric.number, begin_ms, end_ms),
    )
    for at_ms, data in frames:
        try:
            frame = unpack(data, (-1,), exact=metric.exact)[: values.shape[0]]
        except Damaged:
            continue
        values[: frame.size, (at_ms - begin_ms) // INTERVAL_MS] = frame
    for _name, slot, first_ms in rows:
        if first_ms > begin_ms:  # the slot may have had another name before
            values[slot, : (first_ms - begin_ms) // INTERVAL_MS] = np.nan
    known = np.flatnonzero(~np.isnan(values).all(axis=0))
    if not known.size:
        return None
    newest_ms = begin_ms + int(known[-1]) * INTERVAL_MS
    slots = {name: slot for name, slot, _first_ms in rows}
    return Window(slots, values[:, : known[-1] + 1], newest_ms, interval_ms)


def _copy_hour(
    db: sqlite3.Connection, metric: Metric, hour_ms: int, values: Values, begin_ms: int
) -> None:
    """Copy the samples of a closed hour, of all segments, into `values` from `begin_ms`."""
    offset = (hour_ms - begin_ms) // INTERVAL_MS
    first, last = max(0, offset), min(values.shape[1], offset + SAMPLES_OF_HOUR)
    rows = db.execute(
        "SELECT segment, data FROM hour WHERE metric = ? AND begin_ms = ?", (metric.number, hour_ms)
    )
    for segment, data in rows:
        try:
            hour = unpack(data, (SLOTS, SAMPLES_OF_HOUR), exact=metric.exact)
        except Damaged:
            continue
        slots = values[segment * SLOTS : (segment + 1) * SLOTS]
        slots[:, first:last] = hour[: slots.shape[0], first - offset : last - offset]
