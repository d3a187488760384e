"""The process of a job's program: start, reports, stop of the whole process group.

The program has a process group, so that a signal also reaches the JVM of Spark. The worker holds
the standard input of the program: after a crash of the worker, the pipe closes and the program
exits.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from console.services.jobs.report_stream import ReportStream
from console.services.jobs.reports import Report

STOP_GRACE_S: Final = 10.0
LOG_TAIL_BYTES: Final = 16 * 1024
#: Environment variables withheld from the program: secrets of the console.
SECRETS: Final = frozenset({"SECRET_KEY", "GANTRY_ADMIN_PASSWORD", "DATABASE_URL", "REDIS_URL"})


class ProgramEnded(Exception):
    """The program ended without a final report."""


class JobProcess:
    """One run of a program. close() stops all processes."""

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=clean_environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._reports = ReportStream(self._process.stdout)

    @property
    def pid(self) -> int:
        """Process id, and the id of the process group."""
        return self._process.pid

    def next_report(self, timeout_s: float) -> Report | None:
        """The next report; None after the timeout or the end of the program."""
        return self._reports.next_report(timeout_s)

    def has_ended(self) -> bool:
        """Whether the program has exited and all reports were read."""
        if self._process.poll() is None:
            return False
        # A child process can outlive the program and keep the output pipe open.
        self._signal(signal.SIGKILL)
        return self._reports.has_ended()

    @property
    def exit_code(self) -> int | None:
        """Negative signal number after a kill; None during the run."""
        return self._process.poll()

    def exit_error(self) -> Exception:
        """The error of a program that exited without a final report."""
        code = self.exit_code
        if code is not None and code < 0:
            return ProgramEnded(f"The process of the job was killed by signal {-code}.")
        return ProgramEnded(f"The process of the job ended with code {code}; its log tells more.")

    def stop(self) -> None:
        """SIGTERM to the process group, then SIGKILL after a grace period."""
        for sign, grace_s in ((signal.SIGTERM, STOP_GRACE_S), (signal.SIGKILL, STOP_GRACE_S)):
            self._signal(sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
                return

    def close(self) -> None:
        """Stop running processes and close the pipes."""
        if self._process.poll() is None:
            self.stop()
        while not self.has_ended():
            self.next_report(0.1)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def log_tail(self) -> str:
        """The end of the log."""
        return end_of_log(self._log, 0)

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)


def end_of_log(log: Path, begin: int) -> str:
    """The end of a log file from the byte `begin`, LOG_TAIL_BYTES at most."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, log.stat().st_size - LOG_TAIL_BYTES))
            return file.read(LOG_TAIL_BYTES).decode("utf-8", "replace").replace("\x00", "")
    except OSError:
        return ""


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables without secrets of the console."""
    return {name: value for name, value in environ.items() if name not in SECRETS}
