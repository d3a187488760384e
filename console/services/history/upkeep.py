"""Frames become hours, hours become days; retention in time and in size.

Work runs in small transactions until a deadline, between two samples. All of it may be repeated:
what is found decides what is done, and a row that exists is merged.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np
from django.conf import settings

from console.services.history.blocks import pack, reduced, rounded
from console.services.history.metrics import BY_NUMBER, DAY_MS, HOUR_MS, MINUTE_MS, Metric
from console.services.history.rows import read_frames, shape_of, store_values, unpacked_row
from console.services.history.store import SAMPLES_OF_MINUTE, SLOTS, Store, Table

log = logging.getLogger(__name__)

#: Samples are kept at least this long, ms: a day, and the open hour.
SAMPLES_KEPT_MS: Final = DAY_MS + HOUR_MS
#: Time after the end of an hour for late samples, ms.
SETTLED_AFTER_MS: Final = 30_000
#: Rows of `day` that are written in one transaction.
ROWS_AT_ONCE: Final = 32
MEBIBYTE: Final = 1 << 20


class Upkeep:
    """The work on one cluster's store beside sampling; `forgot_names` is called after removals."""

    def __init__(
        self,
        store: Store,
        forgot_names: Callable[[], None],
        *,
        keep_days: int,
        bytes_max: int,
    ) -> None:
        self._store = store
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
            with self._store.transaction():
                self._store_hour(*closed)
        day_ms = settled_ms // DAY_MS * DAY_MS
        if self._days_done_ms < day_ms and not self._todo:
            self._todo.extend(self._store.missing_days(self._days_done_ms, day_ms))
        while self._todo:
            if not within():
                return False
            with self._store.transaction():
                for _ in range(min(ROWS_AT_ONCE, len(self._todo))):
                    self._store_day(*self._todo.popleft())
        self._days_done_ms = day_ms
        if self._retained_ms < hour_ms:
            self._retain(now_ms)
            self._retained_ms = hour_ms
        return True

    def _closed_frames(self, hour_ms: int) -> tuple[Metric, int] | None:
        """The metric and the hour of a frame before `hour_ms`."""
        row = self._store.frame_before(hour_ms)
        return (BY_NUMBER[row[0]], row[1] // HOUR_MS * HOUR_MS) if row else None

    def _store_hour(self, metric: Metric, begin_ms: int) -> None:
        """Move the frames of a metric's hour to rows of `hour`."""
        values = read_frames(self._store, metric, begin_ms)
        store_values(self._store, "hour", metric, begin_ms, values)
        self._store.delete_frames(metric, begin_ms, begin_ms + HOUR_MS)
        seen = np.flatnonzero(~np.isnan(values).all(axis=1))
        self._store.see_names(metric.scope, seen.tolist(), begin_ms + HOUR_MS)

    def _store_day(self, number: int, segment: int, day_ms: int) -> None:
        """Write the minutes of a segment's day."""
        metric = BY_NUMBER[number]
        minutes = np.full(shape_of("day", metric, SLOTS), np.nan)
        rows = self._store.rows("hour", metric, day_ms, day_ms + DAY_MS, [segment])
        for _segment, begin_ms, data in rows:
            first = (begin_ms - day_ms) // MINUTE_MS
            kept = reduced(unpacked_row("hour", metric, data), SAMPLES_OF_MINUTE, metric.kept)
            for index, name in enumerate(metric.kept):
                # The mean of counts is no count: its last digits would fill the store.
                values = rounded(kept[name]) if name == "avg" else kept[name]
                minutes[index, :, first : first + HOUR_MS // MINUTE_MS] = values
        self._store.put_rows("day", [(number, segment, day_ms, pack(minutes, exact=metric.exact))])

    def _retain(self, now_ms: int) -> None:
        """Delete what is too old, then the oldest days beyond the size, then unused names."""
        oldest_sample_ms = min(now_ms - SAMPLES_KEPT_MS, self._days_done_ms) // HOUR_MS * HOUR_MS
        self._delete("hour", oldest_sample_ms)
        self._delete("day", (now_ms - self._keep_days * DAY_MS) // DAY_MS * DAY_MS)
        deleted = 0
        while self._store.size_bytes() > self._bytes_max and (oldest := self._oldest()) is not None:
            self._delete(oldest[0], oldest[1] + 1)
            deleted += 1
        if deleted:
            log.warning("CONSOLE_HISTORY_MB is reached: the %d oldest parts were deleted", deleted)
        first = self._oldest()
        kept_from_ms = now_ms - SAMPLES_KEPT_MS if first is None else first[1]
        with self._store.transaction():
            gone = self._store.forget_names(kept_from_ms)
        if gone:
            self._forgot_names()
        self._store.compact()

    def _oldest(self) -> tuple[Table, int] | None:
        """The table and the time of the oldest rows: of `day`, else of `hour`."""
        tables: tuple[Table, ...] = ("day", "hour")
        for table in tables:
            begin_ms = self._store.oldest_ms(table)
            if begin_ms is not None:
                return table, begin_ms
        return None

    def _delete(self, table: Table, before_ms: int) -> None:
        with self._store.transaction():
            self._store.delete_rows(table, before_ms)


def configured_upkeep(store: Store, forgot_names: Callable[[], None]) -> Upkeep:
    """Return the upkeep with the retention of CONSOLE_HISTORY_DAYS and CONSOLE_HISTORY_MB."""
    return Upkeep(
        store,
        forgot_names,
        keep_days=settings.HISTORY_DAYS,
        bytes_max=settings.HISTORY_MB * MEBIBYTE,
    )
