"""The last samples of all names of a metric, for the rules of alarms."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from console.services.history.blocks import Values
from console.services.history.metrics import HOUR_MS, INTERVAL_MS, Metric
from console.services.history.rows import unpacked_frames, unpacked_row
from console.services.history.store import SAMPLES_OF_HOUR, SLOTS, Store


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
    store: Store, metric: Metric, now_ms: int, duration_ms: int, intervals_min: int
) -> Window | None:
    """Return the samples of the last `duration_ms`, and at least of `intervals_min` intervals of
    the metric. None without a name or a sample. Raises one of STORE_ERRORS.
    """
    rows = store.names(metric.scope)
    interval_ms = store.pace_ms(metric.scope) or INTERVAL_MS
    end_ms = now_ms // INTERVAL_MS * INTERVAL_MS + INTERVAL_MS
    begin_ms = end_ms - max(duration_ms, intervals_min * interval_ms) // INTERVAL_MS * INTERVAL_MS
    if not rows:
        return None
    values = np.full(
        (max(slot for _name, slot, *_times in rows) + 1, (end_ms - begin_ms) // INTERVAL_MS),
        np.nan,
    )
    first_hour_ms = begin_ms // HOUR_MS * HOUR_MS
    for segment, hour_ms, data in store.rows("hour", metric, first_hour_ms, end_ms):
        offset = (hour_ms - begin_ms) // INTERVAL_MS
        first, last = max(0, offset), min(values.shape[1], offset + SAMPLES_OF_HOUR)
        hour = unpacked_row("hour", metric, data)
        slots = values[segment * SLOTS : (segment + 1) * SLOTS]
        slots[:, first:last] = hour[: slots.shape[0], first - offset : last - offset]
    for at_ms, frame in unpacked_frames(store, metric, begin_ms, end_ms):
        size = min(frame.size, values.shape[0])
        values[:size, (at_ms - begin_ms) // INTERVAL_MS] = frame[:size]
    for _name, slot, first_ms, _last_ms in rows:
        if first_ms > begin_ms:  # the slot may have had another name before
            values[slot, : (first_ms - begin_ms) // INTERVAL_MS] = np.nan
    known = np.flatnonzero(~np.isnan(values).all(axis=0))
    if not known.size:
        return None
    newest_ms = begin_ms + int(known[-1]) * INTERVAL_MS
    of_names = {name: slot for name, slot, *_times in rows}
    return Window(of_names, values[:, : known[-1] + 1], newest_ms, interval_ms)
