"""The heat map of a measure over time: columns are points in time, rows are bands of time. Pure."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trace.latency import bucket_of, bucket_value_ms

#: Where each band begins; the last has no end.
BANDS_MS: Final = (
    *(0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000),
    *(300_000, 1_800_000, 3_600_000),
)
SHADES: Final = 6
#: Of more points each two are drawn as one; the API gives them all.
COLUMNS_MAX: Final = 61


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
    #: The fullest cell.
    most: int


def heat_map(points: range, found: Iterable[tuple[int, int, int]]) -> HeatMap:
    """From (point, place of the band in BANDS_MS, count)."""
    columns = list(points)
    counts = [[0] * len(columns) for _band in BANDS_MS]
    for point, band, count in found:
        column = (point - points.start) // points.step
        if 0 <= column < len(columns):
            counts[band][column] += count
    used = [place for place, row in enumerate(counts) if any(row)]
    if not used:
        return HeatMap(columns, [], 0)
    most = max(map(max, counts))
    shown = range(used[-1], used[0] - 1, -1)
    return HeatMap(columns, [_band(place, counts[place], most) for place in shown], most)


def drawn_points(points: range) -> range:
    """The columns of a drawing: at most COLUMNS_MAX, unless the points are very many."""
    return points if len(points) <= COLUMNS_MAX else points[::2]


def _first_bucket(begin_ms: int) -> int:
    """The first bucket of `trace.latency` whose value lies in a band that begins there."""
    bucket = bucket_of(begin_ms)
    while bucket and bucket_value_ms(bucket - 1) >= begin_ms:
        bucket -= 1
    while bucket_value_ms(bucket) < begin_ms:
        bucket += 1
    return bucket


#: Where each band begins, in buckets.
FIRST_BUCKETS: Final = tuple(map(_first_bucket, BANDS_MS))


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
