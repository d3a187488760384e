"""The heat map of a measure: columns are points in time, rows are latency bands. Pure."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trace.latency import bucket_of, bucket_value_ms

#: Lower ends of the bands, ms; the last band has no upper end.
BANDS_MS: Final = (
    *(0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000),
    *(300_000, 1_800_000, 3_600_000),
)
#: Number of shades of non-empty cells.
SHADES: Final = 6
#: Maximum number of drawn columns; beyond, two points share a column. The API returns all points.
COLUMNS_MAX: Final = 61


@dataclass(frozen=True, slots=True)
class Cell:
    """Count of a band at a point in time, and the shade of the cell, from 0 (empty)."""

    count: int
    shade: int


@dataclass(frozen=True, slots=True)
class Band:
    """A row: latencies from `from_ms` up to `to_ms` (None: unbounded), exclusive."""

    from_ms: int
    to_ms: int | None
    cells: list[Cell]
    total: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Bands from the highest to the lowest latency, without empty bands at both ends."""

    points: list[int]
    bands: list[Band]
    #: Highest count of a cell.
    most: int


def heat_map(points: range, counted: Iterable[tuple[int, int, int]]) -> HeatMap:
    """The heat map of (point, index of the band, count) tuples."""
    columns = list(points)
    counts = [[0] * len(columns) for _band in BANDS_MS]
    for point, band, count in counted:
        column = (point - points.start) // points.step
        if 0 <= column < len(columns):
            counts[band][column] += count
    used = [index for index, row in enumerate(counts) if any(row)]
    if not used:
        return HeatMap(columns, [], 0)
    most = max(map(max, counts))
    shown = range(used[-1], used[0] - 1, -1)
    return HeatMap(columns, [_band(index, counts[index], most) for index in shown], most)


def drawn_points(points: range) -> range:
    """The columns of a drawing: all points, or every second point beyond COLUMNS_MAX."""
    return points if len(points) <= COLUMNS_MAX else points[::2]


def _first_bucket(begin_ms: int) -> int:
    """The first bucket of `trace.latency` with a value of at least `begin_ms`."""
    bucket = bucket_of(begin_ms)
    while bucket and bucket_value_ms(bucket - 1) >= begin_ms:
        bucket -= 1
    while bucket_value_ms(bucket) < begin_ms:
        bucket += 1
    return bucket


#: First bucket of every band.
FIRST_BUCKETS: Final = tuple(map(_first_bucket, BANDS_MS))


def band_of(value_ms: float) -> int:
    return bisect_right(BANDS_MS, value_ms) - 1


def shade_of(count: int, most: int) -> int:
    """The shade on a logarithmic scale: a single slow message stays visible beside thousands."""
    if not count:
        return 0
    length = most.bit_length()
    return max(1, -(-SHADES * count.bit_length() // length))


def _band(index: int, row: list[int], most: int) -> Band:
    end = BANDS_MS[index + 1] if index + 1 < len(BANDS_MS) else None
    cells = [Cell(count, shade_of(count, most)) for count in row]
    return Band(BANDS_MS[index], end, cells, sum(row))
