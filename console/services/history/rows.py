"""Arrays of a cluster's store, by table; gaps take the place of missing and damaged rows."""

import logging
from collections.abc import Iterator
from typing import Final

import numpy as np

from console.services.history.blocks import Damaged, Values, pack, unpack
from console.services.history.metrics import HOUR_MS, INTERVAL_MS, Metric
from console.services.history.store import (
    DURATION_MS,
    MINUTES_OF_DAY,
    SAMPLES_OF_HOUR,
    SLOTS,
    Store,
    Table,
)

log = logging.getLogger(__name__)

#: Points of a slot in a row.
POINTS: Final[dict[Table, int]] = {"hour": SAMPLES_OF_HOUR, "day": MINUTES_OF_DAY}


def read_frames(store: Store, metric: Metric, begin_ms: int) -> Values:
    """Return the frames of an hour as an array of slots and samples."""
    found = list(unpacked_frames(store, metric, begin_ms, begin_ms + HOUR_MS))
    slots = max((values.size for _at_ms, values in found), default=0)
    hour = np.full((slots, SAMPLES_OF_HOUR), np.nan)
    for at_ms, values in found:
        hour[: values.size, (at_ms - begin_ms) // INTERVAL_MS] = values
    return hour


def unpacked_frames(
    store: Store, metric: Metric, begin_ms: int, end_ms: int
) -> Iterator[tuple[int, Values]]:
    """Yield time and values of each frame."""
    for at_ms, data in store.frames(metric, begin_ms, end_ms):
        try:
            yield at_ms, unpack(data, (-1,), exact=metric.exact)
        except Damaged:
            log.warning("a sample of %s %s is damaged", metric.scope, metric.name)


def unpacked_row(table: Table, metric: Metric, data: bytes) -> Values:
    """Return the values of a row: slots by samples, or aggregates by slots by minutes."""
    shape = shape_of(table, metric, SLOTS)
    try:
        return unpack(data, shape, exact=metric.exact)
    except Damaged:
        log.warning("a row of %s %s is damaged", metric.scope, metric.name)
        return np.full(shape, np.nan)


def shape_of(table: Table, metric: Metric, slots: int) -> tuple[int, ...]:
    """Return the shape of the values of some slots in an hour or a day."""
    points = slots, POINTS[table]
    return points if table == "hour" else (len(metric.kept), *points)


def store_values(store: Store, table: Table, metric: Metric, begin_ms: int, values: Values) -> None:
    """Write the values of all slots in an hour or a day; existing rows are merged.

    Runs in a transaction of the caller.
    """
    segments = -(-values.shape[-2] // SLOTS)
    padded = np.full(shape_of(table, metric, segments * SLOTS), np.nan)
    padded[..., : values.shape[-2], :] = values
    end_ms = begin_ms + DURATION_MS[table]
    before = {
        segment: data for segment, _begin_ms, data in store.rows(table, metric, begin_ms, end_ms)
    }
    rows = []
    for segment in range(segments):
        part = padded[..., segment * SLOTS : (segment + 1) * SLOTS, :]
        if np.isnan(part).all():
            continue
        if segment in before:
            earlier = unpacked_row(table, metric, before[segment])
            part = np.where(np.isnan(part), earlier, part)
        rows.append((metric.number, segment, begin_ms, pack(part, exact=metric.exact)))
    store.put_rows(table, rows)
