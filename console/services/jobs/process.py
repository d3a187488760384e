"""The process of a job's program: start, reports, stop of the whole process group.

The program has a process group, so that a signal also reaches the JVM of Spark. The worker holds
the standard input of the program: after a crash of the worker, the pipe closes and the program
exits.
"""

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from console.services.jobs.reports import LINE_BYTES_MAX, Report, read_line

STOP_GRACE_S: Final = 10.0
LOG_TAIL_BYTES: Final = 16 * 1024
REPORTS_WAITING_MAX: Final = 1000
#: Environment variables withheld from the program: secrets of the console.
SECRETS: Final = frozenset({"SECRET_KEY", "GANTRY_ADMIN_PASSWORD", "DATABASE_URL", "REDIS_URL"})


class JobProcess:
    """One run of a program. close() stops all processes."""

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        self._reports: queue.Queue[Report | None] = queue.Queue(REPORTS_WAITING_MAX)
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
        self._listener = threading.Thread(target=self._listen, name="job-output", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Process id, and the id of the process group."""
        return self._process.pid

    def next_report(self, timeout_s: float) -> Report | None:
        """The next report; None after the timeout or the end of the program."""
        with contextlib.suppress(queue.Empty):
            return self._reports.get(timeout=timeout_s)
        return None

    def has_ended(self) -> bool:
        """Whether the program has exited and all reports were read."""
        if self._process.poll() is None:
            return False
        # A child process can outlive the program and keep the output pipe open.
        self._signal(signal.SIGKILL)
        return not self._listener.is_alive() and self._reports.empty()

    @property
    def exit_code(self) -> int | None:
        """Negative signal number after a kill; None during the run."""
        return self._process.poll()

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
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
                return file.read(LOG_TAIL_BYTES).decode("utf-8", "replace").replace("\x00", "")
        except OSError:
            return ""

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    def _listen(self) -> None:
        """Read reports in a thread until the program closes the output."""
        output: IO[bytes] | None = self._process.stdout
        assert output is not None
        with contextlib.suppress(ValueError, OSError):  # concurrent close
            while line := output.readline(LINE_BYTES_MAX + 1):
                report = read_line(line)
                if report is not None:
                    self._reports.put(report)
        self._reports.put(None)  # wakes next_report()


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables without secrets of the console."""
    return {name: value for name, value in environ.items() if name not in SECRETS}
