"""Job processes with real programs: reports, stop, no leftover processes."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from console.services.jobs import process as process_module
from console.services.jobs.process import JobProcess, clean_environment
from console.services.jobs.reports import Done, Progress, Report

DEADLINE_S = 90.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], JobProcess]]:
    made: list[JobProcess] = []

    def begin(program: str) -> JobProcess:
        command = [sys.executable, "-u", "-c", textwrap.dedent(program)]
        made.append(JobProcess(command, folder=tmp_path, log=tmp_path / "logs" / "job.log"))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def all_said(job: JobProcess) -> list[Report]:
    said: list[Report] = []
    deadline = time.monotonic() + DEADLINE_S
    while not job.has_ended():
        assert time.monotonic() < deadline, "the program did not end"
        if (report := job.next_report(0.1)) is not None:
            said.append(report)
    return said


def test_reports_are_told_from_noise_and_the_log_is_kept(
    start: Callable[[str], JobProcess],
) -> None:
    job = start(
        """
        import sys
        print('noise')
        print('{"event": "progress", "percent": 50}')
        print('x' * 300000)
        print('{"event": "done", "rows": 7}', end='')
        print('why it went so', file=sys.stderr)
        """
    )
    assert all_said(job) == [Progress(percent=50), Done(done=7)]
    assert job.exit_code == 0
    assert job.log_tail() == "why it went so\n"


def test_a_program_that_fails_tells_its_code(start: Callable[[str], JobProcess]) -> None:
    job = start("import sys; sys.exit(3)")
    assert all_said(job) == []
    assert job.exit_code == 3


def test_what_the_program_started_ends_with_it(start: Callable[[str], JobProcess]) -> None:
    job = start(
        """
        import json, subprocess, sys
        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
        print(json.dumps({"event": "done", "rows": child.pid}))
        """
    )
    [done] = all_said(job)
    assert isinstance(done, Done)
    wait_for(lambda: not psutil.pid_exists(done.done) or is_dead(done.done))


def test_stopping_reaches_the_whole_group(start: Callable[[str], JobProcess]) -> None:
    job = start(
        """
        import json, subprocess, sys, time
        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
        print(json.dumps({"event": "progress", "rows": child.pid}))
        time.sleep(600)
        """
    )
    progress = job.next_report(DEADLINE_S)
    assert isinstance(progress, Progress)
    job.stop()
    assert job.exit_code is not None
    assert job.exit_code < 0
    job.close()
    wait_for(lambda: is_dead(progress.done))


def test_one_that_does_not_listen_is_killed(
    start: Callable[[str], JobProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "STOP_GRACE_S", 0.3)
    job = start(
        """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('{"event": "progress"}')
        time.sleep(600)
        """
    )
    assert job.next_report(DEADLINE_S) is not None
    job.close()
    assert job.exit_code == -9


def test_a_chatty_program_does_not_fill_our_memory(start: Callable[[str], JobProcess]) -> None:
    job = start(
        """
        while True:
            print('{"event": "progress"}')
        """
    )
    assert job.next_report(DEADLINE_S) is not None
    wait_for(job._reports.is_full)
    job.close()
    assert job.exit_code is not None


def test_the_program_stops_when_its_worker_dies() -> None:
    """The worker holds the program's standard input; the program ends when that closes."""
    program = "import sys; print('up', flush=True); sys.stdin.read()"
    worker = textwrap.dedent(
        f"""
        import pathlib, sys, tempfile
        from console.services.jobs.process import JobProcess
        folder = pathlib.Path(tempfile.mkdtemp())
        job = JobProcess([sys.executable, '-c', {program!r}], folder=folder, log=folder / 'log')
        print(job.pid, flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_dead(pid)
        parent.kill()
    wait_for(lambda: is_dead(pid))


def test_secrets_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "GANTRY_ADMIN_PASSWORD"):
        monkeypatch.setenv(name, "secret")
    kept = clean_environment(os.environ)
    assert "secret" not in kept.values()
    assert kept["PATH"] == os.environ["PATH"]


def is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
