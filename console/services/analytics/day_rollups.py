"""Sums of whole days, so that a month does not mean reading every minute of it.

    <lake>/days/<dataset>/<level in hours>/2026-11-05-<digest>.parquet

A file holds what the hours of one UTC day say, added up by one, two or six hours or for the day,
whose first millisecond stands in its time column; lists of messages are only put together. The
digest stands for the very files it was made of: when a job makes an hour again, the file no longer
fits and is not used any more, and the next job makes a new one. So a missing or old file costs
time, and nothing else.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
from django.conf import settings

from console.services.analytics.ranges import DAY_MS, TimeRange
from console.services.jobs.paths import lake_of
from trace.lake import EDGES, HOUR_MS, LATENCY, MINUTE, SLOW, Lake, Snapshot
from trace.tables import TABLES, Table

log = logging.getLogger(__name__)

DAY_HOURS: Final = 24
#: In the lake.
ROLLUPS_FOLDER: Final = "days"
#: Of what length the sums are, the longest first.
LEVELS_HOURS: Final = (DAY_HOURS, 6, 2, 1)
#: So many whole hours make reading their sums worth while.
MIXED_HOURS_MIN: Final = 3
#: So long an old file stays for whoever is reading it.
KEPT_S: Final = 3600

_KEYS: Final = ("topic", "producer_group", "consumer_group", "msg_type")
COUNTS: Final = tuple(
    column.name
    for column in TABLES[MINUTE].columns
    if column.type == "bigint" and column.name != "minute_ms"
)
_EDGE_COUNTS: Final = (
    *("messages", "bytes", "attempts", "failures", "dead_letters", "never_consumed"),
)


@dataclass(frozen=True, slots=True)
class _Sum:
    """What becomes of the columns of a table; those not named cannot be added up, and are null."""

    keys: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    #: Rows are kept as they are.
    is_list: bool = False


_SUMS: Final = {
    MINUTE: _Sum(_KEYS, COUNTS),
    LATENCY: _Sum((*_KEYS, "measure", "bucket"), ("count",)),
    EDGES: _Sum(_KEYS[:3], _EDGE_COUNTS, least=("first_ms",), most=("last_ms",)),
    SLOW: _Sum(is_list=True),
}


def rollup_of(
    lake: Lake, snapshot: Snapshot, dataset: str, day: int, level_hours: int
) -> Path | None:
    """Where the sums of a day (since 1970) are, when they fit the snapshot; None without any
    data. The file may not be there."""
    parts = snapshot.parts.get(dataset, {})
    hours = range(day * DAY_HOURS, (day + 1) * DAY_HOURS)
    made_of = [(hour, parts[hour]) for hour in hours if hour in parts]
    if dataset not in _SUMS or not made_of:
        return None
    digest = hashlib.blake2b(repr(made_of).encode(), digest_size=8).hexdigest()
    name = f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}-{digest}.parquet"
    return lake.root / ROLLUPS_FOLDER / dataset / str(level_hours) / name


def level_for(step_ms: int) -> int | None:
    """The longest sums that a grid of `step_ms` can be drawn from; None for the minutes."""
    return next((hours for hours in LEVELS_HOURS if step_ms % (hours * HOUR_MS) == 0), None)


def files_of(
    lake: Lake, snapshot: Snapshot, dataset: str, range_: TimeRange, *, is_whole: bool = False
) -> list[Path]:
    """What to read for a range: folders of minutes, and sums where they are there.

    The sums are those of the range's step, on which it begins and ends. `is_whole` says that its
    points are not told apart; then days that lie in it whole are read as one sum.
    """
    parts = snapshot.parts.get(dataset, {})
    hours = range_.hours
    found: list[Path] = []
    for day in sorted({hour // DAY_HOURS for hour in hours if hour in parts}):
        levels = [level_for(range_.step_ms)] if dataset in _SUMS else []
        if is_whole and range_.begin_ms <= day * DAY_MS <= range_.end_ms - DAY_MS:
            levels.insert(0, DAY_HOURS)
        summaries = [
            rollup_of(lake, snapshot, dataset, day, level) for level in levels if level is not None
        ]
        summary = next((path for path in summaries if path and path.is_file()), None)
        if summary is not None:
            found.append(summary)
        else:
            of_day = [hour for hour in hours if hour // DAY_HOURS == day]
            found += lake.folders(dataset, parts, of_day)
    return found


@dataclass(frozen=True, slots=True)
class Mixed:
    """Sums of hours in the middle of a range, and minutes at its ends."""

    files: list[Path]
    #: Of the hours whose sums count, of all that are in the files of sums; the minutes count
    #: outside of them.
    begin_ms: int
    end_ms: int


def mixed_files(lake: Lake, snapshot: Snapshot, dataset: str, range_: TimeRange) -> Mixed | None:
    """What to read of a range whose points are not told apart, and are shorter than hours; None
    when there are too few whole hours, or not all of their sums are there."""
    begin, end = -(-range_.begin_ms // HOUR_MS), range_.end_ms // HOUR_MS
    if level_for(range_.step_ms) or dataset not in _SUMS or end - begin < MIXED_HOURS_MIN:
        return None
    parts = snapshot.parts.get(dataset, {})
    days = sorted({hour // DAY_HOURS for hour in range(begin, end) if hour in parts})
    sums = [rollup_of(lake, snapshot, dataset, day, 1) for day in days]
    found = [path for path in sums if path is not None and path.is_file()]
    if len(found) < len(days):
        return None
    ends = [hour for hour in range_.hours if not begin <= hour < end]
    files = [*found, *lake.folders(dataset, parts, ends)]
    return Mixed(files, begin * HOUR_MS, end * HOUR_MS)


def write_day_rollups(cluster: str, moved: Callable[[], None]) -> int:
    """Make the sums that are missing, and delete those nobody needs; returns how many days were
    made. A day that cannot be read is left out: its minutes are read instead."""
    lake = Lake(lake_of(cluster))
    snapshot = lake.snapshot()
    made, wanted = set(), set()
    for dataset in _SUMS:
        days = {hour // DAY_HOURS for hour in snapshot.parts.get(dataset, {})}
        for day in sorted(days):
            moved()
            files = {
                level: rollup_of(lake, snapshot, dataset, day, level) for level in LEVELS_HOURS
            }
            wanted |= set(files.values())
            if all(path is not None and path.is_file() for path in files.values()):
                continue
            try:
                _make(lake, snapshot, dataset, day)
                made.add(day)
            except duckdb.Error as error:
                log.warning("no sums of day %s of %s: %s", day, lake.root, error)
    _sweep(lake, wanted)
    return len(made)


def _make(lake: Lake, snapshot: Snapshot, dataset: str, day: int) -> None:
    """The sums of one day in every length; the longer ones are made of the shorter."""
    hours = range(day * DAY_HOURS, (day + 1) * DAY_HOURS)
    folders = lake.folders(dataset, snapshot.parts[dataset], hours)
    source = [str(path) for folder in folders for path in sorted(folder.glob("*.parquet"))]
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"SET threads = {settings.ANALYTICS_THREADS}")
        connection.execute(f"SET memory_limit = '{settings.ANALYTICS_MEMORY_MB}MB'")
        for level in reversed(LEVELS_HOURS):
            path = rollup_of(lake, snapshot, dataset, day, level)
            assert path is not None
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_suffix(".half")
            connection.execute(_sql(dataset, level, half), {"files": source})
            half.rename(path)
            source = [str(path)]


def _sql(dataset: str, level_hours: int, path: Path) -> str:
    """The file has all columns of the table. Everything that is put in is this module's own."""
    rows = "read_parquet($files, hive_partitioning = false)"
    target = str(path).replace("'", "''")
    if _SUMS[dataset].is_list:
        select = f"SELECT * FROM {rows}"  # noqa: S608
    else:
        columns = ", ".join(_columns(TABLES[dataset], _SUMS[dataset], level_hours * HOUR_MS))
        select = f"SELECT {columns} FROM {rows} GROUP BY ALL"  # noqa: S608
    return f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"


def _columns(table: Table, wanted: _Sum, length_ms: int) -> Iterator[str]:
    for name, kind, _meaning in table.columns:
        if name == table.time_column:
            yield f"{name} // {length_ms} * {length_ms} AS {name}"
        elif name in wanted.keys:
            yield name
        elif name in wanted.sums:
            yield f'sum("{name}")::BIGINT AS "{name}"'
        elif name in wanted.least:
            yield f"min({name}) AS {name}"
        elif name in wanted.most:
            yield f"max({name}) AS {name}"
        else:
            yield f"NULL::{kind} AS {name}"


def _sweep(lake: Lake, wanted: set[Path | None]) -> None:
    """Delete what no longer fits and nobody can be reading any more."""
    horizon = time.time() - KEPT_S
    for path in (lake.root / ROLLUPS_FOLDER).glob("*/*/*"):
        with suppress(FileNotFoundError):
            if path not in wanted and path.stat().st_mtime < horizon:
                path.unlink()
