"""Small lines of the rows of a list: a metric of each name over the last hour.

`read_minutes` reads the lines of all rows at once. The value of a minute is its last sample. In the
open hour, a frame has the values of all names: one frame per minute is unpacked, or every frame
where a name is not sampled in each of them.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np

from console.services.history.blocks import Damaged, Values, reduced, unpack
from console.services.history.metrics import HOUR_MS, MINUTE_MS, Metric
from console.services.history.rows import unpacked_row
from console.services.history.store import SAMPLES_OF_MINUTE, SLOTS, Place, Store

MINUTES: Final = 60
#: Maximum number of lines read at once.
LINES_MAX: Final = 200
#: Maximum size of the kept frames, bytes. The frames of an hour for the four metrics of lists take
#: 12 MB in a cluster with 5,000 topics and groups, so five such clusters fit.
FRAMES_BYTES_MAX: Final = 64 * 1024 * 1024
#: Memory of a kept frame beside its contents, bytes.
FRAME_BYTES: Final = 512
#: Size of the drawing, in units of its view box: one unit per minute.
HEIGHT: Final = 16


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The minutes of one line, NaN for a gap."""

    values: Values

    @property
    def known(self) -> Values:
        return self.values[~np.isnan(self.values)]

    @property
    def low(self) -> float:
        return float(self.known.min())

    @property
    def high(self) -> float:
        return float(self.known.max())

    @property
    def path(self) -> str:
        """Return the `d` of an SVG path, from 0 at the bottom; a gap interrupts the line."""
        scale = (HEIGHT - 2) / max(self.high, 1e-9)
        parts, is_down = [], False
        for minute, value in enumerate(self.values.tolist()):
            if isnan(value):
                is_down = False
                continue
            parts.append(f"{'L' if is_down else 'M'}{minute} {HEIGHT - 1 - value * scale:.1f}")
            is_down = True
            if minute + 1 == self.values.size or isnan(self.values[minute + 1]):
                parts.append("h.5")  # a single sample is a dot
        return "".join(parts)


def read_sparklines(
    place: Place, metric: Metric, names: Sequence[str], now_ms: int
) -> dict[str, Sparkline]:
    """Return the lines of the first LINES_MAX names; names without a sample have none.

    Raises one of STORE_ERRORS.
    """
    begin_ms = (now_ms // MINUTE_MS + 1 - MINUTES) * MINUTE_MS
    with place.reader() as store:
        if store is None:
            return {}
        slots = {
            name: (slot, first_ms)
            for name, slot, first_ms, _last_ms in store.names(metric.scope, names[:LINES_MAX])
        }
        lines = {name: np.full(MINUTES, np.nan) for name in slots}
        _add_hours(store, metric, slots, lines, begin_ms)
        _add_frames(store, metric, slots, lines, begin_ms)
    for name, (_slot, first_ms) in slots.items():
        # Before its first sample, the slot may have had another name.
        lines[name][: max(0, min(MINUTES, (first_ms - begin_ms) // MINUTE_MS))] = np.nan
    return {name: Sparkline(line) for name, line in lines.items() if not np.isnan(line).all()}


def _add_hours(
    store: Store,
    metric: Metric,
    slots: Mapping[str, tuple[int, int]],
    lines: Mapping[str, Values],
    begin_ms: int,
) -> None:
    """Fill the minutes that packed hours hold; the range touches at most two hours."""
    segments: dict[int, list[str]] = {}
    for name, (slot, _first_ms) in slots.items():
        segments.setdefault(slot // SLOTS, []).append(name)
    first_hour_ms, end_ms = begin_ms // HOUR_MS * HOUR_MS, begin_ms + MINUTES * MINUTE_MS
    rows = store.rows("hour", metric, first_hour_ms, end_ms, list(segments))
    for segment, hour_ms, data in rows:
        offset = (hour_ms - begin_ms) // MINUTE_MS
        samples = unpacked_row("hour", metric, data)
        minutes = reduced(samples, SAMPLES_OF_MINUTE, ("last",))["last"]
        for name in segments[segment]:
            row = minutes[slots[name][0] % SLOTS]
            first, until = max(0, offset), min(MINUTES, offset + row.size)
            lines[name][first:until] = row[first - offset : until - offset]


def _add_frames(
    store: Store,
    metric: Metric,
    slots: Mapping[str, tuple[int, int]],
    lines: Mapping[str, Values],
    begin_ms: int,
) -> None:
    """Fill the minutes of the open hour."""
    end_ms = begin_ms + MINUTES * MINUTE_MS
    # All frames where names have a slower pace, else the last of each minute.
    read = store.last_frames if store.pace_ms(metric.scope) is None else store.frames
    for at_ms, data in read(metric, begin_ms, end_ms):
        try:
            values = _frames_kept.values(data, exact=metric.exact)
        except Damaged:
            continue
        minute = (at_ms - begin_ms) // MINUTE_MS
        for name, (slot, _first_ms) in slots.items():
            if slot < values.size and not isnan(values[slot]):
                lines[name][minute] = values[slot]


class FrameCache:
    """Values of unpacked frames, at most `bytes_max`; the frame unused for longest goes first.

    By content, because a file may be replaced. Of 60 frames, a refresh of a list finds one new.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: OrderedDict[tuple[bytes, bool], Values] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def values(self, packed: bytes, *, exact: bool) -> Values:
        """Return the values of a frame, for reading only. Raises Damaged."""
        key = (packed, exact)
        with self._lock:
            if (kept := self._frames.get(key)) is not None:
                self._frames.move_to_end(key)
                return kept
        values = unpack(packed, (-1,), exact=exact)
        values.flags.writeable = False
        with self._lock:
            if key not in self._frames:
                self._frames[key] = values
                self.bytes += _size(packed, values)
            while self.bytes > self._bytes_max:
                (old, _exact), dropped = self._frames.popitem(last=False)
                self.bytes -= _size(old, dropped)
        return values


def _size(packed: bytes, values: Values) -> int:
    return FRAME_BYTES + len(packed) + values.nbytes


_frames_kept: Final = FrameCache(FRAMES_BYTES_MAX)
