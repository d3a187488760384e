"""The file of one cluster's history: SQLite with write-ahead log, one writer, many readers.

The tables are those of `store.py`. A file that SQLite cannot read is renamed, and a new one begins.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from console.services.history.store import WAIT_S, Rows, Store

log = logging.getLogger(__name__)

VERSION: Final = 1
#: Ends of the names of SQLite's files beside a file.
_SIDE_FILES: Final = ("-wal", "-shm")
#: Free pages returned to the file system in one step.
FREED_PAGES: Final = 4_096

SCHEMA: Final = f"""
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS name (
  scope INTEGER, slot INTEGER, name TEXT, first_ms INTEGER, last_ms INTEGER,
  PRIMARY KEY (scope, slot), UNIQUE (scope, name)
);
CREATE TABLE IF NOT EXISTS frame (
  metric INTEGER, at_ms INTEGER, data BLOB, PRIMARY KEY (metric, at_ms)
);
CREATE TABLE IF NOT EXISTS hour (
  metric INTEGER, segment INTEGER, begin_ms INTEGER, data BLOB,
  PRIMARY KEY (metric, segment, begin_ms)
);
CREATE TABLE IF NOT EXISTS day (
  metric INTEGER, segment INTEGER, begin_ms INTEGER, data BLOB,
  PRIMARY KEY (metric, segment, begin_ms)
);
CREATE TABLE IF NOT EXISTS pace (scope INTEGER PRIMARY KEY, interval_ms INTEGER);
PRAGMA user_version = {VERSION};
COMMIT;
"""


def path_of(home: Path, cluster: str) -> Path:
    """The file of a cluster; names of clusters are safe in file names (`CLUSTER_NAME`)."""
    return home / "history" / f"{cluster}.sqlite3"


class FileStore(Store):
    """The rows of a file; `db` is its connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__({"t": "", "own": "TRUE", "key": "", "value": ""})
        self.db = db

    def _read(self, template: str, values: Sequence[Any]) -> Rows:
        return self.db.execute(self._sql(template), values).fetchall()

    def _change(self, template: str, values: Sequence[Any]) -> int:
        return self.db.execute(self._sql(template), values).rowcount

    def _change_each(self, template: str, rows: Iterable[Sequence[Any]]) -> None:
        self.db.executemany(self._sql(template), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def size_bytes(self) -> int:
        """Return the size of the file without free pages."""
        pages, free, page_bytes = (
            int(self.db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_bytes

    def compact(self) -> None:
        # A script, because `execute` stops after the first freed page.
        self.db.executescript(f"PRAGMA incremental_vacuum({FREED_PAGES})")

    def close(self) -> None:
        self.db.close()


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The file at a path."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @contextmanager
    def reader(self) -> Iterator[FileStore | None]:
        """Open the file; None without a file, and before the writer has made its tables."""
        if not self.path.exists():
            yield None
            return
        db = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)
        try:
            db.execute("BEGIN")  # all reads see the same state
            has_tables = db.execute("PRAGMA user_version").fetchone()[0] != 0
            yield FileStore(db) if has_tables else None
        finally:
            db.close()

    def writer(self) -> FileStore:
        """Open or create the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return FileStore(_opened(self.path))
        except sqlite3.OperationalError:
            raise  # a full disk, a lock: the file is fine
        except sqlite3.DatabaseError as damage:
            log.warning(
                "%s cannot be read (%s): renamed to .broken, a new file begins", self, damage
            )
            self.path.replace(self.path.with_suffix(".broken"))
            for end in _SIDE_FILES:
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)
            return FileStore(_opened(self.path))

    def delete(self) -> None:
        for end in ("", *_SIDE_FILES):
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)


def stored_files(home: Path) -> list[tuple[str, FilePlace]]:
    """Return the files of all clusters, also of removed ones."""
    paths = sorted((home / "history").glob("*.sqlite3"))
    return [(path.stem, FilePlace(path)) for path in paths]


def _opened(path: Path) -> sqlite3.Connection:
    # The threads of the sampler's pool take turns; each use is after the end of the one before.
    db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        _check_version(db)
        db.executescript(SCHEMA)
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def _check_version(db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, VERSION):
        raise sqlite3.DatabaseError(f"format {version}, expected {VERSION}")
