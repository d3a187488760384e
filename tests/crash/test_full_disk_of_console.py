"""Consoles that start on a really full disk; need root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console_program import ROOT, ConsoleProgram
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


def _create_token(home: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "manage.py", "create_token", "admin"]
    env = {**os.environ, "GANTRY_HOME": home}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
