"""A job's program as a process of its own: started, listened to, stopped with all it started.

The program gets its own process group, so that a signal reaches the JVM it starts too. We hold
its standard input: should this worker die, the input closes and the program stops by itself.
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
#: What the program has no need of: whoever sees its environment must not become the console.
SECRETS: Final = frozenset({"SECRET_KEY", "GANTRY_ADMIN_PASSWORD", "DATABASE_URL", "REDIS_URL"})


class JobProcess:
    """One run of a program. Close it in the end; that stops what still runs."""

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
        """The next thing it says; None when it says nothing for so long, or has ended."""
        with contextlib.suppress(queue.Empty):
            return self._reports.get(timeout=timeout_s)
        return None

    def has_ended(self) -> bool:
        """True when it is gone and all it said was read."""
        if self._process.poll() is None:
            return False
        # What it started may outlive it and would keep its output open.
        self._signal(signal.SIGKILL)
        return not self._listener.is_alive() and self._reports.empty()

    @property
    def exit_code(self) -> int | None:
        """Negative when a signal ended it; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask the whole group to end, and insist after a grace time."""
        for sign, grace_s in ((signal.SIGTERM, STOP_GRACE_S), (signal.SIGKILL, STOP_GRACE_S)):
            self._signal(sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
                return

    def close(self) -> None:
        """Stop what still runs and give the pipes back."""
        if self._process.poll() is None:
            self.stop()
        while not self.has_ended():
            self.next_report(0.1)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def log_tail(self) -> str:
        """The end of what it wrote to its log."""
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
        """Runs in a thread of its own until the program closes its output."""
        output: IO[bytes] | None = self._process.stdout
        assert output is not None
        with contextlib.suppress(ValueError, OSError):  # closed under us
            while line := output.readline(LINE_BYTES_MAX + 1):
                report = read_line(line)
                if report is not None:
                    self._reports.put(report)
        self._reports.put(None)  # whoever waits for the next word need wait no longer


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the console's secrets."""
    return {name: value for name, value in environ.items() if name not in SECRETS}
