"""Frames become hours, hours become days; retention in time and in size.

Work runs in small transactions until a deadline, between two samples. All of it may be repeated:
what is found decides what is done, and a row that exists is merged.
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from console.services.history.blocks import Values, pack, reduced, rounded
from console.services.history.files import (
    MINUTES_OF_DAY,
    SAMPLES_OF_HOUR,
    SAMPLES_OF_MINUTE,
    SLOTS,
    size_bytes,
    transaction,
)
from console.services.history.metrics import BY_NUMBER, DAY_MS, HOUR_MS, SCOPES, Metric
from console.services.history.rows import read_frames, read_hour

log = logging.getLogger(__name__)

#: Samples are kept at least this long, ms: a day, and the open hour.
SAMPLES_KEPT_MS: Final = DAY_MS + HOUR_MS
#: Time after the end of an hour for late samples, ms.
SETTLED_AFTER_MS: Final = 30_000
#: Rows of `day` that are written in one transaction.
ROWS_AT_ONCE: Final = 32
#: Free pages returned to the file system in one step.
FREED_PAGES: Final = 4_096


class Upkeep:
    """The work on one cluster's file beside sampling; `forgot_names` is called after removals."""

    def __init__(
        self,
        db: sqlite3.Connection,
        forgot_names: Callable[[], None],
        *,
        keep_days: int,
        bytes_max: int,
    ) -> None:
        self._db = db
        self._forgot_names = forgot_names
        self._keep_days = keep_days
        self._bytes_max = bytes_max
        self._todo: deque[tuple[int, int, int]] = deque()
        #: End of the days whose rows are all written, ms.
        self._days_done_ms = 0
        self._retained_ms = 0

    def run(self, now_ms: int, within: Callable[[], bool]) -> bool:
        """Work while `within()` is true; return True when nothing is left to do."""
        settled_ms = now_ms - SETTLED_AFTER_MS
        hour_ms = settled_ms // HOUR_MS * HOUR_MS
        while (closed := self._closed_frames(hour_ms)) is not None:
            if not within():
                return False
            with transaction(self._db):
                self._store_hour(*closed)
        day_ms = settled_ms // DAY_MS * DAY_MS
        if self._days_done_ms < day_ms and not self._todo:
            self._todo.extend(self._missing_days(day_ms))
        while self._todo:
            if not within():
                return False
            with transaction(self._db):
                for _ in range(min(ROWS_AT_ONCE, len(self._todo))):
                    self._store_day(*self._todo.popleft())
        self._days_done_ms = day_ms
        if self._retained_ms < hour_ms:
            self._retain(now_ms)
            self._retained_ms = hour_ms
        return True

    def _closed_frames(self, hour_ms: int) -> tuple[Metric, int] | None:
        """The metric and the hour of the oldest frame before `hour_ms`."""
        row = self._db.execute(
            "SELECT metric, at_ms FROM frame WHERE at_ms < ? LIMIT 1", (hour_ms,)
        ).fetchone()
        return (BY_NUMBER[row[0]], row[1] // HOUR_MS * HOUR_MS) if row else None

    def _store_hour(self, metric: Metric, begin_ms: int) -> None:
        """Move the frames of a metric's hour to rows of `hour`."""
        span = (metric.number, begin_ms, begin_ms + HOUR_MS)
        values = read_frames(self._db, metric, begin_ms)
        store_hour(self._db, metric, begin_ms, values)
        self._db.execute("DELETE FROM frame WHERE metric = ? AND at_ms >= ? AND at_ms < ?", span)
        seen = np.flatnonzero(~np.isnan(values).all(axis=1))
        number = SCOPES[metric.scope]
        self._db.executemany(
            "UPDATE name SET last_ms = max(last_ms, ?) WHERE scope = ? AND slot = ?",
            [(begin_ms + HOUR_MS, number, int(slot)) for slot in seen],
        )

    def _missing_days(self, day_ms: int) -> list[tuple[int, int, int]]:
        """Metric, segment and day of the rows that `day` lacks, before the open day."""
        rows = self._db.execute(
            f"""SELECT DISTINCT metric, segment, begin_ms / {DAY_MS} * {DAY_MS} AS day_ms
            FROM hour WHERE begin_ms < ? AND begin_ms >= ? AND NOT EXISTS (
              SELECT 1 FROM day WHERE day.metric = hour.metric AND day.segment = hour.segment
              AND day.begin_ms = hour.begin_ms / {DAY_MS} * {DAY_MS}
            )""",  # noqa: S608 - constants only
            (day_ms, self._days_done_ms),
        )
        return list(rows)

    def _store_day(self, number: int, segment: int, day_ms: int) -> None:
        """Write the minutes of a segment's day."""
        metric = BY_NUMBER[number]
        minutes = np.full((len(metric.kept), SLOTS, MINUTES_OF_DAY), np.nan)
        per_hour = SAMPLES_OF_HOUR // SAMPLES_OF_MINUTE
        for hour in range(24):
            values = read_hour(self._db, metric, segment, day_ms + hour * HOUR_MS)
            if values is None:
                continue
            kept = reduced(values, SAMPLES_OF_MINUTE, metric.kept)
            for index, name in enumerate(metric.kept):
                # The mean of counts is no count: its last digits would fill the file.
                values = rounded(kept[name]) if name == "avg" else kept[name]
                minutes[index, :, hour * per_hour : (hour + 1) * per_hour] = values
        data = pack(minutes, exact=metric.exact)
        self._db.execute(
            "INSERT OR REPLACE INTO day VALUES (?, ?, ?, ?)", (number, segment, day_ms, data)
        )

    def _retain(self, now_ms: int) -> None:
        """Delete what is too old, then the oldest days beyond the size, then unused names."""
        oldest_sample_ms = min(now_ms - SAMPLES_KEPT_MS, self._days_done_ms) // HOUR_MS * HOUR_MS
        self._delete("hour", oldest_sample_ms)
        self._delete("day", (now_ms - self._keep_days * DAY_MS) // DAY_MS * DAY_MS)
        deleted = 0
        while size_bytes(self._db) > self._bytes_max and (oldest := self._oldest()) is not None:
            self._delete(oldest[0], oldest[1] + 1)
            deleted += 1
        if deleted:
            log.warning("CONSOLE_HISTORY_MB is reached: the %d oldest parts were deleted", deleted)
        first = self._oldest()
        kept_from_ms = now_ms - SAMPLES_KEPT_MS if first is None else first[1]
        with transaction(self._db):
            gone = self._db.execute("DELETE FROM name WHERE last_ms < ?", (kept_from_ms,)).rowcount
            self._db.execute(
                "UPDATE name SET first_ms = ? WHERE first_ms < ?", (kept_from_ms, kept_from_ms)
            )
        if gone:
            self._forgot_names()
        # A script, because `execute` stops after the first freed page.
        self._db.executescript(f"PRAGMA incremental_vacuum({FREED_PAGES})")

    def _oldest(self) -> tuple[str, int] | None:
        """The table and the time of the oldest rows: of `day`, else of `hour`."""
        for table in ("day", "hour"):
            begin_ms = self._db.execute(f"SELECT min(begin_ms) FROM {table}").fetchone()[0]  # noqa: S608 - constants
            if begin_ms is not None:
                return table, begin_ms
        return None

    def _delete(self, table: str, before_ms: int) -> None:
        with transaction(self._db):
            self._db.execute(f"DELETE FROM {table} WHERE begin_ms < ?", (before_ms,))  # noqa: S608 - constants


def store_hour(db: sqlite3.Connection, metric: Metric, begin_ms: int, values: Values) -> None:
    """Write the samples of all slots in an hour to rows of `hour`; an existing row is merged.

    Runs in a transaction of the caller.
    """
    segments = -(-values.shape[0] // SLOTS)
    padded = np.full((segments * SLOTS, SAMPLES_OF_HOUR), np.nan)
    padded[: values.shape[0]] = values
    for segment in range(segments):
        part = padded[segment * SLOTS : (segment + 1) * SLOTS]
        if np.isnan(part).all():
            continue
        key = (metric.number, segment, begin_ms)
        before = read_hour(db, metric, segment, begin_ms)
        merged = part if before is None else np.where(np.isnan(part), before, part)
        data = pack(merged, exact=metric.exact)
        db.execute("INSERT OR REPLACE INTO hour VALUES (?, ?, ?, ?)", (*key, data))
