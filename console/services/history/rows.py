"""Arrays of a cluster's file, by table; gaps take the place of missing and damaged rows."""

import logging
import sqlite3
from collections.abc import Iterator
from typing import Final

import numpy as np

from console.services.history.blocks import Damaged, Values, unpack
from console.services.history.files import MINUTES_OF_DAY, SAMPLES_OF_HOUR, SLOTS
from console.services.history.metrics import DAY_MS, HOUR_MS, INTERVAL_MS, Metric

log = logging.getLogger(__name__)

#: Tables of rows with SLOTS slots: duration of a row, ms.
DURATION_MS: Final = {"hour": HOUR_MS, "day": DAY_MS}


def read_frames(db: sqlite3.Connection, metric: Metric, begin_ms: int) -> Values:
    """Return the frames of an hour as an array of slots and samples."""
    found = list(_frames(db, metric, begin_ms))
    slots = max((values.size for _index, values in found), default=0)
    hour = np.full((slots, SAMPLES_OF_HOUR), np.nan)
    for index, values in found:
        hour[: values.size, index] = values
    return hour


def read_slot(db: sqlite3.Connection, metric: Metric, slot: int, begin_ms: int) -> Values:
    """Return the values of a slot in the frames of an hour."""
    hour = np.full(SAMPLES_OF_HOUR, np.nan)
    for index, values in _frames(db, metric, begin_ms):
        if slot < values.size:
            hour[index] = values[slot]
    return hour


def _frames(db: sqlite3.Connection, metric: Metric, begin_ms: int) -> Iterator[tuple[int, Values]]:
    """Yield the frames of an hour, each with its place in the hour."""
    rows = db.execute(
        "SELECT at_ms, data FROM frame WHERE metric = ? AND at_ms >= ? AND at_ms < ?",
        (metric.number, begin_ms, begin_ms + HOUR_MS),
    )
    for at_ms, data in rows:
        try:
            yield (at_ms - begin_ms) // INTERVAL_MS, unpack(data, (-1,), exact=metric.exact)
        except Damaged:
            log.warning("a sample of %s %s is damaged", metric.scope, metric.name)


def read_hour(db: sqlite3.Connection, metric: Metric, segment: int, at_ms: int) -> Values | None:
    """Return the samples of a segment's hour, slots by samples; None without a row."""
    return _row(db, "hour", metric, segment, at_ms, (SLOTS, SAMPLES_OF_HOUR))


def read_day(db: sqlite3.Connection, metric: Metric, segment: int, at_ms: int) -> Values | None:
    """Return the minutes of a segment's day, aggregates by slots by minutes; None without a row."""
    shape = (len(metric.kept), SLOTS, MINUTES_OF_DAY)
    return _row(db, "day", metric, segment, at_ms, shape)


def _row(
    db: sqlite3.Connection,
    table: str,
    metric: Metric,
    segment: int,
    at_ms: int,
    shape: tuple[int, ...],
) -> Values | None:
    begin_ms = at_ms // DURATION_MS[table] * DURATION_MS[table]
    row = db.execute(
        f"SELECT data FROM {table} WHERE metric = ? AND segment = ? AND begin_ms = ?",  # noqa: S608 - a constant
        (metric.number, segment, begin_ms),
    ).fetchone()
    if row is None:
        return None
    try:
        return unpack(row[0], shape, exact=metric.exact)
    except Damaged:
        log.warning("a row of %s %s is damaged", metric.scope, metric.name)
        return np.full(shape, np.nan)
