"""The heat map of a measure over time: columns are points in time, rows are bands of time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trace.latency import bucket_value_ms

BANDS_MS: Final = (
    *(0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000),
    *(300_000, 1_800_000, 3_600_000),
)
"""Where each band begins; the last has no end."""
SHADES: Final = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """How many fell into a band at a point, and how dark that is drawn, from 0 (none)."""

    count: int
    shade: int


@dataclass(frozen=True, slots=True)
class Band:
    """One row, from its lower end up to the upper, None for the last."""

    from_ms: int
    to_ms: int | None
    cells: list[Cell]
    total: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Bands from the longest time to the shortest, without empty ones at either end."""

    points: list[int]
    bands: list[Band]
    most: int
    """The fullest cell."""


def heat_map(points: Iterable[int], buckets: Iterable[tuple[int, int, int]]) -> HeatMap:
    """From (point, bucket of `trace.latency`, count)."""
    columns = list(points)
    index = {point: place for place, point in enumerate(columns)}
    counts = [[0] * len(columns) for _band in BANDS_MS]
    for point, bucket, count in buckets:
        if point in index:
            counts[band_of(bucket_value_ms(bucket))][index[point]] += count
    used = [place for place, row in enumerate(counts) if any(row)]
    if not used:
        return HeatMap(columns, [], 0)
    most = max(map(max, counts))
    shown = range(used[-1], used[0] - 1, -1)
    return HeatMap(columns, [_band(place, counts[place], most) for place in shown], most)


def band_of(value_ms: float) -> int:
    return bisect_right(BANDS_MS, value_ms) - 1


def shade_of(count: int, most: int) -> int:
    """By orders of magnitude: a single slow message beside thousands must still be seen."""
    if not count:
        return 0
    length = most.bit_length()
    return max(1, -(-SHADES * count.bit_length() // length))


def _band(place: int, row: list[int], most: int) -> Band:
    end = BANDS_MS[place + 1] if place + 1 < len(BANDS_MS) else None
    cells = [Cell(count, shade_of(count, most)) for count in row]
    return Band(BANDS_MS[place], end, cells, sum(row))
