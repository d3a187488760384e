"""Consoles on a really full disk, of SQLite at the start and of PostgreSQL later; need root."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from tests.support.console_program import ROOT, ConsoleProgram
from tests.support.postgres import OWNER, PostgreSql, why_not
from tests.support.small_disks import fill, mounted

pytestmark = pytest.mark.crash

DISK_BYTES = 12 * 1024 * 1024


def test_a_console_starts_on_a_full_disk_and_reads(tmp_path: Path) -> None:
    """First with the reserve, then without: the second console answers when space is free."""
    with mounted(tmp_path, "tmpfs", DISK_BYTES) as disk:
        home = str(disk)
        with ConsoleProgram(tmp_path / "output", GANTRY_HOME=home):
            reserve = disk / "console.sqlite3-reserve"
            assert reserve.exists()
        fill(disk / "filler")
        with ConsoleProgram(tmp_path / "output", is_prepared=True, GANTRY_HOME=home) as console:
            fill(disk / "filler")
            assert not reserve.exists()
            # A table is read: the sessions, for a request with a cookie.
            answer, _page = console.request("GET", "/accounts/login/", Cookie="sessionid=none")
            assert answer.status == 200
            answer, body = console.request("GET", "/readyz?exclude=cluster-local")
            assert answer.status == 200
            assert f"[!]database cannot be written: the disk of {home} has 0 KiB" in body.decode()
        fill(disk / "filler")
        with ConsoleProgram(tmp_path / "output", is_prepared=True, GANTRY_HOME=home) as console:
            assert console.request("GET", "/accounts/login/")[0].status == 507
            answer, body = console.request("GET", "/readyz?exclude=cluster-local")
            assert answer.status == 503
            assert f"The disk of the folder {home} is full" in body.decode()
            assert console.output.count("is full, 0 KiB of 12 MiB are free") == 1
            command = _create_token(home)
            assert command.returncode == 2
            assert f"The disk of the folder {home} is full" in command.stderr
            (disk / "filler").unlink()
            assert console.request("GET", "/accounts/login/")[0].status == 200


@pytest.fixture
def small_tablespace() -> Iterator[Path]:
    """A file system for a tablespace; pytest's folders belong to the user of the tests alone."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with TemporaryDirectory(prefix="gantry-tablespace-") as folder:
        Path(folder).chmod(0o755)
        with mounted(Path(folder), "tmpfs", 4 * DISK_BYTES) as disk:
            (disk / "space").mkdir()
            if os.geteuid() == 0:
                shutil.chown(disk / "space", OWNER)
            yield disk


def test_pages_go_on_while_the_disk_of_postgresql_is_full(
    tmp_path: Path, small_tablespace: Path
) -> None:
    disk = small_tablespace
    with PostgreSql() as server:
        with psycopg.connect(server.url, autocommit=True) as database:
            database.execute(f"CREATE TABLESPACE small LOCATION '{disk / 'space'}'".encode())
            database.execute("CREATE DATABASE small TABLESPACE small")
        url = server.url.rpartition("/")[0] + "/small"
        with ConsoleProgram(tmp_path, DATABASE_URL=url) as console:
            created = _create_token(str(tmp_path), DATABASE_URL=url)
            token = {"Authorization": f"Token {created.stdout.split()[-1]}"}
            numbers = iter(range(1_000))

            def create_role() -> int:
                role = {"name": f"role-{next(numbers)}", "permissions": ["topics:read"]}
                body = json.dumps(role | {"description": 200 * "x"})
                more = token | {"Content-Type": "application/json"}
                return console.request("POST", "/api/v1/roles", body, **more)[0].status

            def get(path: str) -> tuple[int, str]:
                answer, body = console.request("GET", path, **token)
                return answer.status, body.decode()

            fill(disk / "filler")
            # Pages of the table with free space take some rows.
            status = next(status for status in iter(create_role, None) if status != 201)
            assert status == 507
            for path in ("/api/v1/users", "/api/v1/audit", "/accounts/login/"):
                assert get(path)[0] == 200, path
            status, body = get("/readyz?exclude=cluster-local")
            assert status == 200
            assert "[!]writes a full disk refused a write" in body
            assert "No space left on device" in body
            assert "console-disk-full" in get("/api/v1/clusters/local/findings?kind=console")[1]
            (disk / "filler").unlink()
            assert create_role() == 201


def _create_token(home: str, **environ: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "manage.py", "create_token", "admin"]
    env = {**os.environ, "GANTRY_HOME": home, **environ}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
