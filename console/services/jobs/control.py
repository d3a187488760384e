"""The interface between the work of a running job and the job's row: progress, heartbeat, commands.

Work calls `moved` or `check` every few seconds; both write a due heartbeat. Work without a call for
`ledger.LOST_AFTER` counts as lost, and the next `check` raises Cancelled. The row is read and
written at most once per POLL_S, so frequent calls are cheap.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.utils.translation import gettext_noop

from console.services.jobs import ledger
from console.services.jobs.models import Job
from console.services.jobs.reports import Progress
from console.services.jobs.states import State

POLL_S: Final = 1.0
HEARTBEAT_S: Final = 5.0

# Rows store the English text; pages translate the text.
WORKER_STOPPED: Final = gettext_noop("The worker was stopped while the job ran. Start it again.")
TOOK_TOO_LONG: Final = gettext_noop("The job took longer than a job may and was stopped.")

#: Set at shutdown of the worker process; running jobs stop.
stopping = threading.Event()

Listener = Callable[[Job], None]


class Cancelled(Exception):
    """The job was cancelled or taken from the worker; the work must end."""


class JobFailed(Exception):
    """The work failed; the message becomes the error of the job."""


class Control:
    """Control of one running job, owned by the thread of the work."""

    def __init__(self, job: Job, notify: Listener, seconds_max: float) -> None:
        self.job = job
        self._notify = notify
        self._seconds_max = seconds_max
        self._begun = time.monotonic()
        self._paused_s = 0.0
        self._pending: Progress | None = None
        self._written = 0.0
        self._polled = 0.0
        self._measured: tuple[float, int] | None = None

    def moved(
        self,
        *,
        stage: str = "",
        done: int = 0,
        total: int | None = None,
        rate: float | None = None,
        detail: str = "",
        outputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Report progress. `rate` is per second, measured here when None; `detail` is a short
        position; `outputs` are the results so far."""
        percent = 100.0 * done / total if total else 0.0
        now = time.monotonic()
        if rate is None:
            rate = self._rate(now, done)
        self.report(
            Progress(
                stage=stage,
                percent=percent,
                done=done,
                total=total,
                rate=rate,
                detail=detail,
                outputs=outputs,
            )
        )

    def report(self, progress: Progress) -> None:
        """Report progress of a program. Only the newest report per POLL_S is written."""
        self._pending = progress
        if time.monotonic() - self._written >= POLL_S or progress.stage != self.job.stage:
            self._write()

    def check(self) -> None:
        """Raises Cancelled after a cancel, JobFailed after the time limit. Blocks while the job is
        paused."""
        now = time.monotonic()
        if now - self._polled < POLL_S and not stopping.is_set():
            return
        self._polled = now
        self._poll()
        if now - self._written >= HEARTBEAT_S:
            self._write()
        if now - self._begun - self._paused_s > self._seconds_max:
            raise JobFailed(TOOK_TOO_LONG)

    def wait(self, seconds: float) -> None:
        """Sleep with regular calls of `check`: for rate-limited work."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            stopping.wait(min(rest, POLL_S))
            self.check()

    def flush(self) -> None:
        """Write the pending progress report, if any."""
        if self._pending is not None:
            self._write()

    def _poll(self) -> None:
        """Read the pending command from the row; block during a pause."""
        paused_at: float | None = None
        while True:
            if stopping.is_set():
                raise JobFailed(WORKER_STOPPED)
            command = ledger.pending_command(self.job)
            if command is ledger.Command.STOP:
                raise Cancelled
            if command is ledger.Command.CONTINUE:
                break
            if paused_at is None:
                paused_at = time.monotonic()
                self._write()
            elif time.monotonic() - self._written >= HEARTBEAT_S:
                self._write()
            stopping.wait(POLL_S)
        if paused_at is not None:
            self._paused_s += time.monotonic() - paused_at
            self._measured = None
            self._write()

    def _write(self) -> None:
        """Write progress and heartbeat to the row, and notify the listener."""
        progress, self._pending = self._pending, None
        self._written = time.monotonic()
        ledger.note(self.job, progress)
        self._notify(self.job)

    def _rate(self, now: float, done: int) -> float | None:
        """Items per second since the last measurement, over at least POLL_S; None at the start."""
        if self._measured is None or done < self._measured[1]:
            self._measured = now, done
            return None
        since, before = self._measured
        if now - since < POLL_S:
            return self.job.rate if self.job.state == State.RUNNING else None
        self._measured = now, done
        return round((done - before) / (now - since), 1)
