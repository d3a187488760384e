"""`manage.py up` as a program: start, use, stop, and faults of the machine."""

import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.small_disks import fill, mounted
from tests.up.gantry import ROOT, Gantry, clean_environment, status_of

ALL = {"namesrv", "core_broker", "uvicorn", "worker", "beat", "valkey-server"}

#: Runs the scheduler, which gets SIGTERM in the middle of the first transaction.
INTERRUPTED_SCHEDULER = """
import os, signal, django
from console.celery import app
django.setup()
from django_celery_beat.schedulers import DatabaseScheduler

read = DatabaseScheduler.update_from_dict

def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return read(*arguments)

DatabaseScheduler.update_from_dict = interrupted
app.start(["beat", "--loglevel", "INFO", "--pidfile="])
"""

DISK_BYTES = 192 * 1024 * 1024

pytestmark = pytest.mark.timeout(300)


def test_the_first_start_prints_all_addresses_and_the_admin(home: Path) -> None:
    output = (home / "first_start").read_text()
    for word in ("data folder", "name server", "broker", "console", "valkey"):
        assert re.search(rf"^  {word}", output, re.M), output
    assert re.search(r"^\[setup\] .*admin.*", output, re.M), output
    logs = sorted(path.name for path in (home / "logs").glob("*.log"))
    assert logs == [f"{name}.log" for name in sorted(LOGGED)]


LOGGED = ("namesrv", "broker", "valkey", "console", "worker", "scheduler")


def test_the_password_is_on_the_terminal_only(home: Path) -> None:
    output = (home / "first_start").read_text()
    line = next(line for line in output.splitlines() if "password" in line.lower())
    password = line.split()[-1]
    assert len(password) >= 12, line
    for log in (home / "logs").iterdir():
        assert password not in log.read_text(errors="replace")


def test_a_second_start_is_quick_and_keeps_everything(home: Path) -> None:
    began = time.monotonic()
    with Gantry(home) as gantry:
        gantry.until_ready()
        print(f"second start: {time.monotonic() - began:.1f} s")
        assert gantry.names == ALL
        assert "[setup]" not in gantry.text
        assert gantry.end(signal.SIGTERM) == 0
        assert gantry.lines[-1] == "Gantry has stopped; no program is left running."
        assert gantry.left_running() == []
    with sqlite3.connect(home / "console.sqlite3") as database:
        users = database.execute("select username from auth_user").fetchall()
    assert users == [("admin",)]


def test_no_program_survives_a_killed_up(home: Path) -> None:
    with Gantry(home) as gantry:
        gantry.until_ready()
        gantry.end(signal.SIGKILL)
        assert gantry.left_running() == []
    assert not (home / "store" / "abort").exists(), "the broker did not stop in order"


def test_sigterm_ends_a_starting_scheduler(home: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_SCHEDULER],
        check=False,
        cwd=ROOT,
        env={**clean_environment(), "GANTRY_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "beat: Starting" in ended.stderr


def test_a_start_on_a_full_disk_serves_reads(home: Path, tmp_path: Path) -> None:
    """The broker was killed, and its disk is still full: `up` says so and goes on."""
    with mounted(tmp_path, "ext4", DISK_BYTES) as disk:
        own = disk / "home"
        subprocess.run(["cp", "-a", "--sparse=always", str(home), str(own)], check=True)
        with Gantry(own, "--no-worker") as gantry:
            gantry.until_ready()
            assert gantry.end(signal.SIGKILL) == -signal.SIGKILL
            for program in gantry.programs:
                program.kill()
            assert gantry.left_running() == []
        # The console would free its reserve, and the broker may write into that space.
        (own / "console.sqlite3-reserve").unlink()
        fill(disk / "ballast")
        with Gantry(own, "--no-worker") as gantry:
            url = gantry.until_ready()
            assert status_of(f"{url}/livez") == 200
            assert "core_broker" in gantry.names
            assert "No space left on device" in gantry.text
            port = re.search(r"^  broker .* on port (\d+)", gantry.text, re.M)
            assert port is not None
            assert status_of(f"http://127.0.0.1:{port[1]}/readyz") == 503
            assert status_of(f"http://127.0.0.1:{port[1]}/readyz?exclude=store") == 200
            (disk / "ballast").unlink()
            gantry.until("WARNING.*has free space again")
            assert gantry.end() == 0, gantry.text


def test_two_on_one_home_are_refused(home: Path) -> None:
    with Gantry(home, "--no-worker") as first:
        first.until_ready()
        with Gantry(home) as second:
            assert second.wait() == 2
            assert "Another Gantry already runs on" in second.text
        assert first.end() == 0


def test_the_error_names_the_port_in_use_and_its_option(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Gantry(home, f"--broker-port={port}") as gantry:
            assert gantry.wait() == 2
    assert re.search(rf"^Gantry stopped: Port {port} .*--broker-port", gantry.text, re.M)


def test_wrong_settings_end_the_start_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "broker.conf").write_text("brokerName=a\nflushDiskType=SYNC\n")
    with Gantry(tmp_path, "--no-worker") as gantry:
        assert gantry.wait() == 1
        assert gantry.left_running() == []
    assert re.search(r"broker\.conf:2.*flushDiskType", gantry.text), gantry.text
    assert "ASYNC_FLUSH, SYNC_FLUSH" in gantry.text


def test_without_redis_the_rest_runs(home: Path) -> None:
    with Gantry(home, REDIS_URL="redis://:hunter2@127.0.0.1:1/0") as gantry:
        url = gantry.until_ready()
        assert "REDIS_URL does not answer (Connection refused)" in gantry.text
        assert "hunter2" not in gantry.text
        assert gantry.names == {"namesrv", "core_broker", "uvicorn"}
        assert status_of(f"{url}/livez") == 200
        assert gantry.end() == 0
