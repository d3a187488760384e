"""Rows of one cluster's history: what a store keeps, and the SQL that all stores have in common.

    name    slot of each topic, group and broker, and the time of the first sample
    frame   one sample of one metric: the values of all slots. The open hour
    hour    the samples of an hour: SLOTS slots a row. A day and more
    day     the aggregates of a day's minutes: SLOTS slots a row. CONSOLE_HISTORY_DAYS days
    pace    interval between two samples of a name, by scope, where it is not INTERVAL_MS

Slots count from 0 in each scope, and are given again when all samples of a name are gone. A
transaction moves samples from frames to hours, and another from hours to days: a crash loses at
most the samples of the running transaction.

`files.py` has a file per cluster, `postgres.py` tables of PostgreSQL. Statements are templates:
`{t}` is the prefix of tables, `{own}` the condition of the cluster's rows, `{key}` and `{value}`
the column and the value of the cluster; `?` is a parameter.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, Protocol

from django.db import Error

from console.services.history.metrics import (
    DAY_MS,
    HOUR_MS,
    INTERVAL_MS,
    MINUTE_MS,
    SCOPES,
    Metric,
    Scope,
)

#: Slots of one row of `hour` and `day`.
SLOTS: Final = 16
SAMPLES_OF_HOUR: Final = HOUR_MS // INTERVAL_MS
SAMPLES_OF_MINUTE: Final = MINUTE_MS // INTERVAL_MS
MINUTES_OF_DAY: Final = DAY_MS // MINUTE_MS
#: Maximum number of names of a scope.
NAMES_MAX: Final = 20_000
#: Time to wait for another writer, seconds.
WAIT_S: Final = 5.0

#: Tables of rows with SLOTS slots.
Table = Literal["hour", "day"]
#: Duration of a row, ms.
DURATION_MS: Final[dict[Table, int]] = {"hour": HOUR_MS, "day": DAY_MS}
#: Errors of a store that cannot be read or written.
STORE_ERRORS: Final = (sqlite3.Error, OSError, Error)

#: Rows of a statement.
Rows = list[tuple[Any, ...]]


class Store(ABC):
    """The rows of one cluster. All methods raise one of STORE_ERRORS."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def _sql(self, template: str) -> str:
        return template.format_map(self._words)

    @abstractmethod
    def _read(self, template: str, values: Sequence[Any]) -> Rows:
        """Return the rows of a query."""

    @abstractmethod
    def _change(self, template: str, values: Sequence[Any]) -> int:
        """Carry out a change; return the number of changed rows."""

    @abstractmethod
    def _change_each(self, template: str, rows: Iterable[Sequence[Any]]) -> None:
        """Carry out a change for each row of values."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit at the end; roll back after an error. One writer at a time."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the size of the rows in use."""

    @abstractmethod
    def compact(self) -> None:
        """Return free space to the file system, in part."""

    @abstractmethod
    def close(self) -> None:
        """Release the store."""

    # ---- Names and intervals --------------------------------------------------------------------

    def slots(self) -> Rows:
        """Return number of the scope, slot and name of all names."""
        return self._read("SELECT scope, slot, name FROM {t}name WHERE {own}", ())

    def names(self, scope: Scope, only: Sequence[str] | None = None) -> Rows:
        """Return name, slot, and times of the first and last samples; of some names, or of all.

        The time of the last sample lacks the open hour.
        """
        query = "SELECT name, slot, first_ms, last_ms FROM {t}name WHERE {own} AND scope = ?"
        if only is None:
            return self._read(query, (SCOPES[scope],))
        return self._read(f"{query} AND name IN ({_marks(only)})", (SCOPES[scope], *only))

    def add_names(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows of scope, slot, name, first and last times."""
        self._change_each(
            "INSERT INTO {t}name ({key}scope, slot, name, first_ms, last_ms)"
            " VALUES ({value}?, ?, ?, ?, ?)",
            rows,
        )

    def extend_names(self, rows: Iterable[Sequence[Any]]) -> None:
        """Widen the times of names: rows of first and last times, scope and slot."""
        rows = list(rows)
        for column, sign, index in (("first_ms", ">", 0), ("last_ms", "<", 1)):
            self._change_each(
                f"UPDATE {{t}}name SET {column} = ? WHERE {{own}} AND scope = ? AND slot = ?"
                f" AND {column} {sign} ?",
                [(row[index], row[2], row[3], row[index]) for row in rows],
            )

    def see_names(self, scope: Scope, slots: Iterable[int], at_ms: int) -> None:
        """Raise the time of the last sample of names."""
        self._change_each(
            "UPDATE {t}name SET last_ms = ? WHERE {own} AND scope = ? AND slot = ? AND last_ms < ?",
            [(at_ms, SCOPES[scope], slot, at_ms) for slot in slots],
        )

    def forget_names(self, before_ms: int) -> int:
        """Remove names whose last sample is older; return their number. No name begins earlier."""
        gone = self._change("DELETE FROM {t}name WHERE {own} AND last_ms < ?", (before_ms,))
        self._change(
            "UPDATE {t}name SET first_ms = ? WHERE {own} AND first_ms < ?", (before_ms, before_ms)
        )
        return gone

    def pace_ms(self, scope: Scope) -> int | None:
        """Return the interval between two samples of a name, where the scope has one of its own."""
        query = "SELECT interval_ms FROM {t}pace WHERE {own} AND scope = ?"
        rows = self._read(query, (SCOPES[scope],))
        return int(rows[0][0]) if rows else None

    def set_paces(self, paces: Mapping[Scope, int]) -> None:
        self._change_each(
            "INSERT INTO {t}pace ({key}scope, interval_ms) VALUES ({value}?, ?)"
            " ON CONFLICT ({key}scope) DO UPDATE SET interval_ms = excluded.interval_ms",
            [(SCOPES[scope], pace_ms) for scope, pace_ms in paces.items()],
        )

    # ---- Frames ---------------------------------------------------------------------------------

    def add_frames(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows of metric, time and data; a second frame of the same time is dropped."""
        self._change_each(
            "INSERT INTO {t}frame ({key}metric, at_ms, data) VALUES ({value}?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            rows,
        )

    def frames(self, metric: Metric, begin_ms: int, end_ms: int) -> Rows:
        """Return time and data of a metric's frames."""
        return self._read(
            "SELECT at_ms, data FROM {t}frame"
            " WHERE {own} AND metric = ? AND at_ms >= ? AND at_ms < ? ORDER BY at_ms",
            (metric.number, begin_ms, end_ms),
        )

    def last_frames(self, metric: Metric, begin_ms: int, end_ms: int) -> Rows:
        """Return time and data of the last frame of each minute."""
        return self._read(
            "SELECT at_ms, data FROM {t}frame WHERE {own} AND metric = ? AND at_ms IN ("
            "  SELECT max(at_ms) FROM {t}frame"
            "  WHERE {own} AND metric = ? AND at_ms >= ? AND at_ms < ?"
            f"  GROUP BY at_ms / {MINUTE_MS}"
            ") ORDER BY at_ms",
            (metric.number, metric.number, begin_ms, end_ms),
        )

    def newest_ms(self) -> int | None:
        """Return the time of the newest frame."""
        rows = self._read("SELECT max(at_ms) FROM {t}frame WHERE {own}", ())
        return None if rows[0][0] is None else int(rows[0][0])

    def frame_times(self) -> Rows:
        """Return metric and time of all frames."""
        return self._read("SELECT metric, at_ms FROM {t}frame WHERE {own}", ())

    def frame_before(self, end_ms: int) -> tuple[int, int] | None:
        """Return metric and time of a frame before a time."""
        query = "SELECT metric, at_ms FROM {t}frame WHERE {own} AND at_ms < ? LIMIT 1"
        rows = self._read(query, (end_ms,))
        return (rows[0][0], rows[0][1]) if rows else None

    def delete_frames(self, metric: Metric, begin_ms: int, end_ms: int) -> None:
        self._change(
            "DELETE FROM {t}frame WHERE {own} AND metric = ? AND at_ms >= ? AND at_ms < ?",
            (metric.number, begin_ms, end_ms),
        )

    # ---- Hours and days -------------------------------------------------------------------------

    def rows(
        self,
        table: Table,
        metric: Metric,
        begin_ms: int,
        end_ms: int,
        segments: Sequence[int] | None = None,
    ) -> Rows:
        """Return segment, begin and data of rows that begin in a range, of all or some segments."""
        where = "metric = ? AND begin_ms >= ? AND begin_ms < ?"
        values = [metric.number, begin_ms, end_ms]
        if segments is not None:
            where += f" AND segment IN ({_marks(segments)})"
            values += segments
        return self._read(
            f"SELECT segment, begin_ms, data FROM {{t}}{table} WHERE {{own}} AND {where}", values
        )

    def put_rows(self, table: Table, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of metric, segment, begin and data; existing rows are replaced."""
        self._change_each(
            f"INSERT INTO {{t}}{table} ({{key}}metric, segment, begin_ms, data)"
            " VALUES ({value}?, ?, ?, ?)"
            " ON CONFLICT ({key}metric, segment, begin_ms) DO UPDATE SET data = excluded.data",
            rows,
        )

    def missing_days(self, begin_ms: int, end_ms: int) -> Rows:
        """Return metric, segment and day of the rows that `day` lacks, by the hours of a range."""
        return self._read(
            f"SELECT DISTINCT metric, segment, begin_ms / {DAY_MS} * {DAY_MS} AS day_ms"
            " FROM {t}hour AS hour WHERE {own} AND begin_ms < ? AND begin_ms >= ? AND NOT EXISTS ("
            "  SELECT 1 FROM {t}day AS day WHERE {own}"
            "  AND day.metric = hour.metric AND day.segment = hour.segment"
            f"  AND day.begin_ms = hour.begin_ms / {DAY_MS} * {DAY_MS})",
            (end_ms, begin_ms),
        )

    def begins(self, table: Table) -> Rows:
        """Return metric and begin of all rows, each once, the newest first."""
        query = f"SELECT DISTINCT metric, begin_ms FROM {{t}}{table} WHERE {{own}}"
        return self._read(f"{query} ORDER BY begin_ms DESC, metric", ())

    def oldest_ms(self, table: Table) -> int | None:
        rows = self._read(f"SELECT min(begin_ms) FROM {{t}}{table} WHERE {{own}}", ())
        return None if rows[0][0] is None else int(rows[0][0])

    def delete_rows(self, table: Table, before_ms: int) -> None:
        query = f"DELETE FROM {{t}}{table} WHERE {{own}} AND begin_ms < ?"
        self._change(query, (before_ms,))


class Place(Protocol):
    """Where the history of a cluster is stored; its text is for logs."""

    def reader(self) -> AbstractContextManager[Store | None]:
        """Open for reading: all reads see the same state. None without any history."""

    def writer(self) -> Store:
        """Open for writing."""

    def delete(self) -> None:
        """Delete the whole history; nobody has it open."""


def _marks(values: Sequence[Any]) -> str:
    """Return parameters of a list; a list without values matches nothing."""
    return ",".join("?" * len(values)) or "NULL"
