"""The file of a cluster's history goes to PostgreSQL, after an update or a change of the setting.

The import runs beside the sampler, in steps of one hour or day of one metric, the newest first. A
step may be repeated: rows that exist are merged. After the last step, the file is renamed to
`.imported`, and may be deleted. Names get their slots of the file where these are free.
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from console.services.history.blocks import Values
from console.services.history.files import FilePlace, FileStore, path_of
from console.services.history.metrics import BY_NUMBER, HOUR_MS, SCOPES, Metric, Scope
from console.services.history.rows import (
    POINTS,
    read_frames,
    shape_of,
    store_values,
    unpacked_row,
)
from console.services.history.store import (
    DURATION_MS,
    NAMES_MAX,
    SLOTS,
    Rows,
    Store,
    Table,
)
from console.services.history.writing import free_slots

log = logging.getLogger(__name__)

#: Errors of the file; a store in the database has Django's.
FILE_ERRORS: Final = (sqlite3.Error, OSError)

#: Share of the steps between two lines of the log, percent.
PROGRESS_PERCENT: Final = 10


def pending_import(home: Path, cluster: str, store: Store) -> "FileImport | None":
    """Return the import of a cluster's file into a store that is no file; None without a file.

    A file that cannot be read is left as it is. Raises one of STORE_ERRORS of the store.
    """
    path = path_of(home, cluster)
    if isinstance(store, FileStore) or not path.exists():
        return None
    file: FileStore | None = None
    try:
        file = FilePlace(path).writer()
        return FileImport(path, file, store)
    except FILE_ERRORS as trouble:
        log.warning("%s is not imported: %s", path, trouble)
    except BaseException:
        if file is not None:
            file.close()
        raise
    if file is not None:
        file.close()
    return None


class FileImport:
    """The steps from a file to a store; names are there at once."""

    def __init__(self, path: Path, file: FileStore, store: Store) -> None:
        self._path, self._file, self._store = path, file, store
        #: Slot in the store by slot in the file, and the first time of the slot in the file.
        self._slots: dict[Scope, dict[int, int]] = {}
        self._first_ms: dict[Scope, dict[int, int]] = {}
        with store.transaction():
            for scope in SCOPES:
                self._add_names(scope)
        tables: tuple[Table, ...] = ("hour", "day")
        frames = {(number, at_ms // HOUR_MS * HOUR_MS) for number, at_ms in file.frame_times()}
        steps = [("frame", *each) for each in sorted(frames)]
        steps += [(table, *each) for table in tables for each in file.begins(table)]
        self._todo = deque(each for each in steps if each[1] in BY_NUMBER)
        self._total, self._told_percent = len(self._todo), 0
        log.info("%s: importing %d hours and days of metrics into PostgreSQL", path, self._total)

    def run(self, within: Callable[[], bool]) -> bool:
        """Import while `within()` is true; return True after the last step.

        Raises the errors of the store; errors of the file end the import.
        """
        try:
            return self._run(within)
        except FILE_ERRORS as trouble:
            log.warning(
                "%s: the import stops until the next start of the worker: %s", self._path, trouble
            )
            self.close()
            return True

    def _run(self, within: Callable[[], bool]) -> bool:
        while self._todo:
            if not within():
                return False
            table, number, begin_ms = self._todo[0]
            with self._store.transaction():
                self._step(table, BY_NUMBER[number], begin_ms)
            self._todo.popleft()
            self._tell()
        self.close()
        done = self._path.with_suffix(".imported")
        self._path.replace(done)
        log.info("%s is imported, and is now %s: delete the file when you like", self._path, done)
        return True

    def close(self) -> None:
        self._file.close()

    def _tell(self) -> None:
        percent = 100 - 100 * len(self._todo) // self._total
        if percent >= self._told_percent + PROGRESS_PERCENT:
            self._told_percent = percent // PROGRESS_PERCENT * PROGRESS_PERCENT
            log.info("%s: %d %% imported", self._path, percent)

    def _add_names(self, scope: Scope) -> None:
        """Give slots to the names of the file, at most NAMES_MAX; extend the times of others."""
        known = {name: slot for name, slot, *_times in self._store.names(scope)}
        rows = self._file.names(scope)
        used, new, later = set(known.values()), [], []
        for name, slot, first_ms, last_ms in rows:
            if name in known:
                later.append((first_ms, last_ms, SCOPES[scope], known[name]))
            elif len(known) < NAMES_MAX:
                known[name] = free_slots(used, 1)[0] if slot in used else slot
                used.add(known[name])
                new.append((SCOPES[scope], known[name], name, first_ms, last_ms))
        self._store.add_names(new)
        self._store.extend_names(later)
        self._slots[scope] = {slot: known[name] for name, slot, *_times in rows if name in known}
        self._first_ms[scope] = {slot: first_ms for _name, slot, first_ms, _last_ms in rows}

    def _step(self, table: str, metric: Metric, begin_ms: int) -> None:
        if table == "frame":
            self._import_frames(metric, begin_ms)
        else:
            self._import_rows("hour" if table == "hour" else "day", metric, begin_ms)

    def _import_frames(self, metric: Metric, begin_ms: int) -> None:
        """Import the samples of an open hour as a part of the hour."""
        values = read_frames(self._file, metric, begin_ms)
        store_values(
            self._store, "hour", metric, begin_ms, self._moved("hour", metric, begin_ms, values)
        )

    def _import_rows(self, table: Table, metric: Metric, begin_ms: int) -> None:
        end_ms = begin_ms + DURATION_MS[table]
        rows = self._file.rows(table, metric, begin_ms, end_ms)
        there = {row[0]: row[2] for row in self._store.rows(table, metric, begin_ms, end_ms)}
        differing = [row for row in rows if there.get(row[0]) != row[2]]
        slots = self._slots[metric.scope]
        if all(old == new for old, new in slots.items()) and not there:
            self._store.put_rows(table, [(metric.number, *row) for row in rows])
        elif differing:
            values = np.full(shape_of(table, metric, _slots_of(differing)), np.nan)
            for segment, _begin_ms, data in differing:
                part = unpacked_row(table, metric, data)
                values[..., segment * SLOTS : (segment + 1) * SLOTS, :] = part
            moved = self._moved(table, metric, begin_ms, values)
            store_values(self._store, table, metric, begin_ms, moved)

    def _moved(self, table: Table, metric: Metric, begin_ms: int, values: Values) -> Values:
        """Return the values by the slots of the store."""
        slots = self._slots[metric.scope]
        found = np.full(shape_of(table, metric, max(slots.values(), default=-1) + 1), np.nan)
        point_ms = DURATION_MS[table] // POINTS[table]
        for slot, target in slots.items():
            if slot >= values.shape[-2]:
                continue
            found[..., target, :] = values[..., slot, :]
            # Before its first sample, the slot may have had another name.
            before = max(0, (self._first_ms[metric.scope][slot] - begin_ms) // point_ms)
            found[..., target, :before] = np.nan
        return found


def _slots_of(rows: Rows) -> int:
    return (max(row[0] for row in rows) + 1) * SLOTS
