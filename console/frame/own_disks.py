"""Disks of the console's own data: database and history files; writes refused by a full disk.

The disk of a PostgreSQL server is not visible: only the server's refusals are.
"""

import errno
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Final

from django.conf import settings

from console.gateway import now_ms

#: A disk is full below the smaller of the two: free bytes, and the share of the disk's size.
FREE_BYTES_MIN: Final = 64 * 1024 * 1024
FREE_SHARE_MIN: Final = 0.05
#: Time after a refused write during which the console shows the refusal, ms.
REFUSAL_MS: Final = 60_000
#: Free bytes below which SQLite cannot make the files of its write-ahead log, and reports an
#: I/O error or a file that cannot be opened.
SIDE_FILES_BYTES: Final = 1024 * 1024
_SIDE_FILE_ERRORS: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
#: SQLSTATE of PostgreSQL: "could not extend file …: No space left on device".
_DISK_FULL_STATE: Final = "53100"
#: Causes of an error that are looked at.
_CAUSES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class OwnDisk:
    """A file system with data of the console; `name` is `database` or `history`."""

    name: str
    path: str
    total_bytes: int
    free_bytes: int

    @property
    def ratio(self) -> float:
        """The used share."""
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_full(self) -> bool:
        return self.free_bytes < min(FREE_BYTES_MIN, FREE_SHARE_MIN * self.total_bytes)

    def free_after(self, written_bytes: int) -> "OwnDisk":
        """Return the disk with a further file."""
        return replace(self, free_bytes=self.free_bytes - written_bytes)


@dataclass(frozen=True, slots=True)
class OwnDisks:
    """The disks, each file system once, and the last refusal of a write in this process."""

    disks: tuple[OwnDisk, ...] = ()
    refused: str = ""
    refused_ms: int | None = None

    @property
    def is_full(self) -> bool:
        return self.refused_ms is not None or any(disk.is_full for disk in self.disks)


class Refusals:
    """The last write that a full disk refused. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: tuple[int, str] | None = None

    def note(self, error: BaseException | None) -> bool:
        """Keep an error of a full disk; return False for another error."""
        if not is_disk_full(error):
            return False
        with self._lock:
            self._last = now_ms(), str(error).strip()
        return True

    def last(self) -> tuple[int, str] | None:
        """Return time and text of a refusal of the last REFUSAL_MS."""
        with self._lock:
            last = self._last
        return last if last is not None and now_ms() - last[0] < REFUSAL_MS else None

    def clear(self) -> None:
        with self._lock:
            self._last = None


refusals = Refusals()


def is_disk_full(error: BaseException | None) -> bool:
    """True for an error of a full disk, or with such a cause: SQLite, PostgreSQL or a file."""
    for _number in range(_CAUSES_MAX):
        if error is None:
            return False
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extension
        if code == sqlite3.SQLITE_FULL or (code in _SIDE_FILE_ERRORS and _has_no_space()):
            return True
        if getattr(error, "sqlstate", "") == _DISK_FULL_STATE:
            return True
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def own_disks() -> OwnDisks:
    """Return the state now."""
    refused_ms, refused = refusals.last() or (None, "")
    return OwnDisks(tuple(_disks()), refused, refused_ms)


def database_file() -> Path | None:
    """Return the file of SQLite; None for another database."""
    database = settings.DATABASES["default"]
    return Path(str(database["NAME"])) if database["ENGINE"].endswith("sqlite3") else None


def database_disk() -> OwnDisk | None:
    """Return the disk of SQLite's file; None when the disk is not visible."""
    return next((disk for disk in _disks() if disk.name == "database"), None)


def why_database_fails() -> str:
    """Say that the disk of the database is full, for a log or a terminal; "" when it is not."""
    path, disk = database_file(), database_disk()
    if path is None or disk is None or disk.free_bytes >= SIDE_FILES_BYTES:
        return ""
    free = f"{disk.free_bytes // 1024} KiB of {disk.total_bytes // (1024 * 1024)} MiB are free"
    return (
        f"The disk of the folder {disk.path} is full, {free}: {path.name} cannot be opened or "
        "written. Free space there, or move the database (GANTRY_HOME, DATABASE_URL)."
    )


def _disks() -> Iterable[OwnDisk]:
    disks: dict[int, OwnDisk] = {}
    for name, folder in _folders():
        try:
            device, found = folder.stat().st_dev, os.statvfs(folder)
        except OSError:
            continue  # the folder is made with the first write
        used = found.f_blocks - found.f_bfree
        total = (used + found.f_bavail) * found.f_frsize
        free = found.f_bavail * found.f_frsize
        disks.setdefault(device, OwnDisk(name, str(folder), total, free))
    return disks.values()


def _has_no_space() -> bool:
    return any(disk.free_bytes < SIDE_FILES_BYTES for disk in _disks())


def _folders() -> list[tuple[str, Path]]:
    found = []
    if (path := database_file()) is not None:
        found.append(("database", path.parent))
    if not settings.HISTORY_IN_DATABASE:
        found.append(("history", Path(settings.GANTRY_HOME) / "history"))
    return found
