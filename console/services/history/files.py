"""The file of one cluster's history: SQLite with write-ahead log, one writer, many readers.

    name    slot of each topic, group and broker, and the time of the first sample
    frame   one sample of one metric: the values of all slots. The open hour
    hour    the samples of an hour: SLOTS slots a row. A day and more
    day     the aggregates of a day's minutes: SLOTS slots a row. CONSOLE_HISTORY_DAYS days
    pace    interval between two samples of a name, by scope, where it is not INTERVAL_MS

Slots count from 0 in each scope, and are given again when all samples of a name are gone. A
transaction moves samples from frames to hours, and another from hours to days: a crash loses at
most the samples of the running transaction. A file that SQLite cannot read is renamed, and a new
one begins.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from console.services.history.metrics import DAY_MS, HOUR_MS, INTERVAL_MS, MINUTE_MS

log = logging.getLogger(__name__)

VERSION: Final = 1
#: Slots of one row of `hour` and `day`.
SLOTS: Final = 16
SAMPLES_OF_HOUR: Final = HOUR_MS // INTERVAL_MS
SAMPLES_OF_MINUTE: Final = MINUTE_MS // INTERVAL_MS
MINUTES_OF_DAY: Final = DAY_MS // MINUTE_MS
#: Maximum number of names of a scope.
NAMES_MAX: Final = 20_000
#: Time to wait for another writer or a checkpoint, seconds.
WAIT_S: Final = 5.0

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


def open_writer(path: Path) -> sqlite3.Connection:
    """Open or create the file. Raises OSError and sqlite3.OperationalError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _opened(path)
    except sqlite3.OperationalError:
        raise  # a full disk, a lock: the file is fine
    except sqlite3.DatabaseError as damage:
        log.warning("%s cannot be read (%s): renamed to .broken, a new file begins", path, damage)
        path.replace(path.with_suffix(".broken"))
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        return _opened(path)


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


@contextmanager
def open_reader(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the file for reading; None without a file, and before the writer has made its tables.

    Raises sqlite3.Error.
    """
    if not path.exists():
        yield None
        return
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)
    try:
        db.execute("BEGIN")  # all reads see the same state
        has_tables = db.execute("PRAGMA user_version").fetchone()[0] != 0
        yield db if has_tables else None
    finally:
        db.close()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end; roll back after an error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def size_bytes(db: sqlite3.Connection) -> int:
    """The size of the file in use, without free pages."""
    pages, free, page_bytes = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_bytes
