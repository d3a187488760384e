"""Values of all objects of a metric, from the samples of the history's last hours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from console.services.history.blocks import Values, reduced
from console.services.history.latest import Window, read_window
from console.services.history.metrics import BY_NAME, INTERVAL_MS, Metric
from console.services.history.places import place_of
from console.services.history.store import Store

#: Longest window, seconds.
WINDOW_S_MAX: Final = 3_600
#: Age of the newest sample from which values are unknown, in intervals of the metric.
INTERVALS_MAX: Final = 6
#: A drop compares the average of this time with the average before, ms.
RECENT_MS: Final = 60_000
#: Averages below this rate have no drop.
DROP_AVERAGE_MIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A function of a metric over a window."""

    metric: Metric
    function: str
    window_s: int

    @classmethod
    def of(cls, scope: str, metric: str, function: str, window_s: int) -> "Wanted | None":
        """None for a metric that the history does not have."""
        found = BY_NAME.get((scope, metric))  # type: ignore[arg-type]
        return None if found is None else cls(found, function, window_s)


class Series:
    """The values of one cluster at one time; each window is read once."""

    def __init__(self, home: Path, cluster: str, now_ms: int) -> None:
        self._place = place_of(home, cluster)
        self._now_ms = now_ms
        self._windows: dict[tuple[int, int], Window | None] = {}

    def values(self, wanted: Wanted) -> dict[str, float]:
        """Return the known values by name. Raises one of STORE_ERRORS."""
        most_ms = wanted.window_s * 1_000 if wanted.function != "last" else 0
        found = self._window(wanted.metric, most_ms)
        if found is None:
            return {}
        with np.errstate(invalid="ignore", divide="ignore"):
            values = _computed(found, wanted.function)
        return {
            name: float(values[slot])
            for name, slot in found.slots.items()
            if slot < values.size and np.isfinite(values[slot])
        }

    def _window(self, metric: Metric, most_ms: int) -> Window | None:
        key = metric.number, most_ms
        if key not in self._windows:
            with self._place.reader() as store:
                found = None if store is None else self._read(store, metric, most_ms)
                self._windows[key] = found
        return self._windows[key]

    def _read(self, store: Store, metric: Metric, most_ms: int) -> Window | None:
        found = read_window(store, metric, self._now_ms, most_ms, INTERVALS_MAX)
        if found is None or self._now_ms - found.newest_ms > INTERVALS_MAX * found.interval_ms:
            return None
        return found


def _computed(found: Window, function: str) -> Values:
    """Return the value of each slot, NaN where it is unknown."""
    values = found.values
    recent = values[:, -max(1, INTERVALS_MAX * found.interval_ms // INTERVAL_MS) :]
    if function == "last":
        return _last(recent)
    if function == "average":
        return _mean(values)
    if function == "growth":
        return _last(recent) - _first(values)
    split = max(1, RECENT_MS // INTERVAL_MS)
    before, now = _mean(values[:, :-split]), _mean(values[:, -split:])
    drop = 100 * (1 - now / before)
    return np.where(before < DROP_AVERAGE_MIN, np.where(np.isnan(now), np.nan, 0.0), drop)


def _first(values: Values) -> Values:
    return _last(values[:, ::-1])


def _last(values: Values) -> Values:
    return reduced(values, values.shape[1], ("last",))["last"][:, 0]


def _mean(values: Values) -> Values:
    if not values.shape[1]:
        return np.full(values.shape[0], np.nan)
    return reduced(values, values.shape[1], ("avg",))["avg"][:, 0]
