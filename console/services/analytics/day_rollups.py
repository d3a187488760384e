"""Day rollups: sums over hours and days, so that queries over months read few rows.

    <lake>/days/<dataset>/<level in hours>/2026-11-05-<digest>.parquet

A file holds the hours of one UTC day, summed by one, two, six or 24 hours; the time column holds
the first millisecond of the sum. Lists of messages are concatenated. The digest identifies the
source files: when a job rewrites an hour, the rollup becomes invalid, and the next job writes a new
rollup. Queries read minutes instead of a missing or invalid rollup: slower, with equal results.
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
from trace.lake import EDGES, HOUR_MS, LATENCY, MINUTE, SLOW, UNTRACED, Lake, Snapshot
from trace.tables import TABLES, Table

log = logging.getLogger(__name__)

DAY_HOURS: Final = 24
#: Folder below the lake.
ROLLUPS_FOLDER: Final = "days"
#: Lengths of the sums, hours, the longest first.
LEVELS_HOURS: Final = (DAY_HOURS, 6, 2, 1)
#: Minimum number of whole hours for which a query mixes hourly sums with minutes.
MIXED_HOURS_MIN: Final = 3
#: Time that an invalid file is kept for running queries, seconds.
KEPT_S: Final = 3600

_KEYS: Final = ("topic", "producer_group", "consumer_group", "msg_type")
COUNTS: Final = tuple(
    column.name
    for column in TABLES[MINUTE].columns
    if column.type == "bigint" and column.name != "minute_ms"
)
_EDGE_COUNTS: Final = ("messages", "bytes", "attempts", "failures", "dead_letters", "untraced")


@dataclass(frozen=True, slots=True)
class _Sum:
    """Aggregation of the columns of a table; columns without an aggregate are null."""

    keys: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    #: Rows are copied without aggregation.
    is_list: bool = False


_SUMS: Final = {
    MINUTE: _Sum(_KEYS, COUNTS),
    LATENCY: _Sum((*_KEYS, "measure", "bucket"), ("count",)),
    EDGES: _Sum(_KEYS[:3], _EDGE_COUNTS, least=("first_ms",), most=("last_ms",)),
    SLOW: _Sum(is_list=True),
    UNTRACED: _Sum(is_list=True),  # sums over hours would mix states
}


def rollup_of(
    lake: Lake, snapshot: Snapshot, dataset: str, day: int, level_hours: int
) -> Path | None:
    """The path of the rollup of a day (days since 1970) for the snapshot; None for days without
    data. The file may be missing."""
    parts = snapshot.parts.get(dataset, {})
    hours = range(day * DAY_HOURS, (day + 1) * DAY_HOURS)
    sources = [(hour, parts[hour]) for hour in hours if hour in parts]
    if dataset not in _SUMS or not sources:
        return None
    digest = hashlib.blake2b(repr(sources).encode(), digest_size=8).hexdigest()
    name = f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}-{digest}.parquet"
    return lake.root / ROLLUPS_FOLDER / dataset / str(level_hours) / name


def level_for(step_ms: int) -> int | None:
    """The longest sums, hours, that divide `step_ms`; None when only minutes do."""
    return next((hours for hours in LEVELS_HOURS if step_ms % (hours * HOUR_MS) == 0), None)


def files_of(
    lake: Lake, snapshot: Snapshot, dataset: str, range_: TimeRange, *, is_whole: bool = False
) -> list[Path]:
    """The files of a range: rollups where present, and folders of minutes for all other days.

    Rollups have the length of the step of the range; begin and end of the range lie on the step.
    With `is_whole`, the query aggregates over the whole range, and whole days use the day rollup.
    """
    parts = snapshot.parts.get(dataset, {})
    hours = range_.hours
    files: list[Path] = []
    for day in sorted({hour // DAY_HOURS for hour in hours if hour in parts}):
        levels = [level_for(range_.step_ms)] if dataset in _SUMS else []
        if is_whole and range_.begin_ms <= day * DAY_MS <= range_.end_ms - DAY_MS:
            levels.insert(0, DAY_HOURS)
        rollups = [
            rollup_of(lake, snapshot, dataset, day, level) for level in levels if level is not None
        ]
        rollup = next((path for path in rollups if path and path.is_file()), None)
        if rollup is not None:
            files.append(rollup)
        else:
            day_hours = [hour for hour in hours if hour // DAY_HOURS == day]
            files += lake.folders(dataset, parts, day_hours)
    return files


@dataclass(frozen=True, slots=True)
class Mixed:
    """Files of a range: hourly sums for the whole hours, minutes for both ends."""

    files: list[Path]
    #: The hours read from sums, among all hours of the sum files, ms; minutes count outside of
    #: `begin_ms` to `end_ms`.
    begin_ms: int
    end_ms: int


def mixed_files(lake: Lake, snapshot: Snapshot, dataset: str, range_: TimeRange) -> Mixed | None:
    """The files of a range for a query over the whole range, with a step below an hour.

    None when the range has fewer than MIXED_HOURS_MIN whole hours, or when sums are missing.
    """
    begin, end = -(-range_.begin_ms // HOUR_MS), range_.end_ms // HOUR_MS
    if level_for(range_.step_ms) or dataset not in _SUMS or end - begin < MIXED_HOURS_MIN:
        return None
    parts = snapshot.parts.get(dataset, {})
    days = sorted({hour // DAY_HOURS for hour in range(begin, end) if hour in parts})
    sums = [rollup_of(lake, snapshot, dataset, day, 1) for day in days]
    present = [path for path in sums if path is not None and path.is_file()]
    if len(present) < len(days):
        return None
    ends = [hour for hour in range_.hours if not begin <= hour < end]
    files = [*present, *lake.folders(dataset, parts, ends)]
    return Mixed(files, begin * HOUR_MS, end * HOUR_MS)


def write_day_rollups(cluster: str, moved: Callable[[], None]) -> int:
    """Write missing rollups and delete invalid rollups; returns the number of written days.

    A day with unreadable files is skipped: queries read the minutes of the day instead. `moved`
    reports progress before each day.
    """
    lake = Lake(lake_of(cluster))
    snapshot = lake.snapshot()
    written, valid = set(), set()
    for dataset in _SUMS:
        days = {hour // DAY_HOURS for hour in snapshot.parts.get(dataset, {})}
        for day in sorted(days):
            moved()
            files = {
                level: rollup_of(lake, snapshot, dataset, day, level) for level in LEVELS_HOURS
            }
            valid |= set(files.values())
            if all(path is not None and path.is_file() for path in files.values()):
                continue
            try:
                _write_day(lake, snapshot, dataset, day)
                written.add(day)
            except duckdb.Error as error:
                log.warning("no rollup of day %s in lake %s: %s", day, lake.root, error)
    _delete_invalid(lake, valid)
    return len(written)


def _write_day(lake: Lake, snapshot: Snapshot, dataset: str, day: int) -> None:
    """Write the sums of a day in every length; longer sums are computed from shorter sums."""
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
    """The COPY statement of a rollup with all columns of the table. No text comes from users."""
    rows = "read_parquet($files, hive_partitioning = false)"
    target = str(path).replace("'", "''")
    if _SUMS[dataset].is_list:
        select = f"SELECT * FROM {rows}"  # noqa: S608
    else:
        columns = ", ".join(_columns(TABLES[dataset], _SUMS[dataset], level_hours * HOUR_MS))
        select = f"SELECT {columns} FROM {rows} GROUP BY ALL"  # noqa: S608
    return f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"


def _columns(table: Table, aggregation: _Sum, length_ms: int) -> Iterator[str]:
    for name, kind, _meaning in table.columns:
        if name == table.time_column:
            yield f"{name} // {length_ms} * {length_ms} AS {name}"
        elif name in aggregation.keys:
            yield name
        elif name in aggregation.sums:
            yield f'sum("{name}")::BIGINT AS "{name}"'
        elif name in aggregation.least:
            yield f"min({name}) AS {name}"
        elif name in aggregation.most:
            yield f"max({name}) AS {name}"
        else:
            yield f"NULL::{kind} AS {name}"


def _delete_invalid(lake: Lake, valid: set[Path | None]) -> None:
    """Delete invalid rollups after KEPT_S, when no query reads them any more."""
    horizon = time.time() - KEPT_S
    for path in (lake.root / ROLLUPS_FOLDER).glob("*/*/*"):
        with suppress(FileNotFoundError):
            if path not in valid and path.stat().st_mtime < horizon:
                path.unlink()
