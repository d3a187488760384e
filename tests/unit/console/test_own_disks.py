"""Disks of the console: errors of a full disk, free space, the finding."""

import asyncio
import errno
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError

from console.frame import own_disks
from console.frame.own_disks import OwnDisk, OwnDisks, Refusals, is_disk_full
from console.gateway import now_ms
from console.services.findings.finding import Severity, Target
from console.services.findings.rules import own
from console.web import health, reserve
from console.web.wal_index import WalIndex
from tests.support import finding_evidence as given
from tests.support.eventually import eventually

GIB = 1 << 30


def wrapped(cause: BaseException) -> OperationalError:
    """The error that Django raises for an error of a database."""
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


def error_of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("trouble")
    error.sqlite_errorcode = code
    return error


def test_sqlite_reports_a_full_disk(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "small.sqlite3")) as database:
        database.execute("CREATE TABLE t (data BLOB)")
        database.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as raised:
            database.execute("INSERT INTO t VALUES (zeroblob(100000))")
    assert is_disk_full(raised.value)
    assert is_disk_full(wrapped(raised.value))


def test_errors_of_a_full_disk_are_told_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_disk_full(wrapped(psycopg.errors.DiskFull("could not extend file")))
    assert is_disk_full(OSError(errno.ENOSPC, "No space left on device"))
    assert is_disk_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    for other in (
        None,
        ValueError("full"),
        OSError(errno.EACCES, "denied"),
        wrapped(error_of_sqlite(sqlite3.SQLITE_BUSY)),
        wrapped(psycopg.errors.OperationalError("the connection is lost")),
    ):
        assert not is_disk_full(other), other
    # SQLite reports its side files on a full disk as I/O errors.
    shm_size = wrapped(error_of_sqlite(sqlite3.SQLITE_IOERR_SHMSIZE))
    monkeypatch.setattr(own_disks, "_disks", lambda: [OwnDisk("database", "/", GIB, GIB // 2)])
    assert not is_disk_full(shm_size)
    monkeypatch.setattr(own_disks, "_disks", lambda: [OwnDisk("database", "/", GIB, 4_096)])
    assert is_disk_full(shm_size)


def test_a_refusal_is_shown_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(ms=1_000)
    monkeypatch.setattr(own_disks, "now_ms", lambda: clock.ms)
    refusals = Refusals()
    assert not refusals.note(ValueError())
    assert refusals.last() is None
    assert refusals.note(OSError(errno.ENOSPC, "No space"))
    last = refusals.last()
    assert last is not None
    assert last[0] == 1_000
    assert "No space" in last[1]
    clock.ms += own_disks.REFUSAL_MS
    assert refusals.last() is None


@pytest.fixture
def replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Settings with a database of SQLite in the home folder."""
    path = tmp_path / "console.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (data TEXT)")
    found = SimpleNamespace(
        GANTRY_HOME=tmp_path,
        HISTORY_IN_DATABASE=False,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": path}},
    )
    monkeypatch.setattr("console.frame.own_disks.settings", found)
    return found


def test_each_file_system_is_measured_once(replaced: SimpleNamespace) -> None:
    (replaced.GANTRY_HOME / "history").mkdir()
    (disk,) = own_disks.own_disks().disks
    assert (disk.name, disk.path) == ("database", str(replaced.GANTRY_HOME))
    assert 0 < disk.free_bytes <= disk.total_bytes
    replaced.DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
    (disk,) = own_disks.own_disks().disks
    assert disk.name == "history"
    replaced.HISTORY_IN_DATABASE = True
    assert own_disks.own_disks().disks == ()


def test_the_index_of_the_log_outlives_other_connections(replaced: SimpleNamespace) -> None:
    path = replaced.DATABASES["default"]["NAME"]
    index = path.with_name(f"{path.name}-shm")

    def read() -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute("SELECT * FROM t").fetchall()

    read()
    assert not index.exists()
    kept = WalIndex()
    kept.keep()
    try:
        read()
        assert index.exists()
    finally:
        kept.close()
    assert not index.exists()


def test_a_database_that_cannot_be_opened_is_logged_once(
    replaced: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The console opens the database as soon as that is possible."""
    path = replaced.DATABASES["default"]["NAME"]
    away = path.with_name("away")
    path.rename(away)
    kept = WalIndex()

    async def run() -> None:
        kept.start()
        away.rename(path)
        await eventually(path.with_name(f"{path.name}-shm").exists)

    monkeypatch.setattr("console.web.wal_index.RETRY_S", 0.01)
    full = OwnDisk("database", str(replaced.GANTRY_HOME), GIB, 4_096)
    monkeypatch.setattr(own_disks, "_disks", lambda: [full])
    asyncio.run(run())
    kept.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for part in (full.path, "4 KiB of 1024 MiB", path.name, "GANTRY_HOME", "DATABASE_URL"):
        assert part in line


def test_the_reserve_is_made_with_space_and_deleted_without(
    replaced: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = OwnDisk("database", str(replaced.GANTRY_HOME), GIB, GIB // 2)
    path = replaced.DATABASES["default"]["NAME"]
    kept = path.with_name(f"{path.name}-reserve")

    def after_start(free_bytes: int) -> bool:
        monkeypatch.setattr(own_disks, "_disks", lambda: [replace(disk, free_bytes=free_bytes)])
        reserve.prepare_space()
        return kept.exists()

    scarce = 50 << 20
    assert not after_start(scarce)
    assert after_start(GIB // 2)
    assert kept.stat().st_size == reserve.RESERVE_BYTES
    assert after_start(scarce)
    assert not after_start(4_096)
    replaced.DATABASES["default"]["NAME"] = path.with_name("missing.sqlite3")
    assert not after_start(GIB // 2)
    assert [each.name for each in replaced.GANTRY_HOME.iterdir()] == [path.name]


def test_readiness_names_full_disks_and_refused_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    full = OwnDisk("database", "/srv/gantry", GIB, 4_096)
    scarce = OwnDisk("history", "/mnt/history", GIB, 20 << 20)
    roomy = OwnDisk("lake", "/mnt/lake", GIB, GIB // 2)
    state = OwnDisks((full, scarce, roomy), "could not extend file\nHINT: space", now_ms())
    monkeypatch.setattr(health, "own_disks", lambda: state)
    (writes, refusal), (first, cannot), (second, may) = health.disk_warnings()
    assert (writes, first, second) == ("writes", "database", "history")
    assert refusal.endswith("could not extend file HINT: space")
    assert cannot == "cannot be written: the disk of /srv/gantry has 4 KiB of 1024 MiB free"
    assert "may soon" in may


def finding_of(**own_state: Any) -> Any:
    state = OwnDisks(**own_state)
    return given.finding(own.console_disk_full, replace(given.evidence(), own_disks=state))


def test_a_full_disk_is_critical_and_a_used_one_a_warning() -> None:
    full = OwnDisk("database", "/srv/gantry", GIB, 1_024)
    one = finding_of(disks=(full,))
    assert (one.severity, one.target) == (Severity.CRITICAL, Target("console", "database"))
    assert one.values["disk_free_bytes"] == 1_024
    one = finding_of(disks=(replace(full, free_bytes=GIB // 11),))
    assert one.severity is Severity.WARNING
    roomy = OwnDisks((replace(full, free_bytes=GIB // 5),))
    assert given.passes(own.console_disk_full, replace(given.evidence(), own_disks=roomy))


def test_a_small_disk_is_full_at_a_share_of_its_size() -> None:
    assert not OwnDisk("history", "/h", 100 << 20, 6 << 20).is_full
    assert OwnDisk("history", "/h", 100 << 20, 4 << 20).is_full


def test_a_refused_write_is_critical() -> None:
    one = finding_of(refused="could not extend file", refused_ms=5)
    assert (one.severity, one.target) == (Severity.CRITICAL, Target("console", "writes"))
    assert "could not extend file" in str(one.text)
