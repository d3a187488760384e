"""What the work of a job talks to while it runs: its progress, its heartbeat, its wishes.

Work calls `moved` or `check` at least every few seconds; each writes a heartbeat when one is due.
Work that is silent for longer than `ledger.LOST_AFTER` counts as lost, and hears so from `check`.
Both are cheap: the row is written and read at most once in POLL_S.
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

# Kept in the row in English, shown in the reader's language.
WORKER_STOPPED: Final = gettext_noop("The worker was stopped while the job ran. Start it again.")
TOOK_TOO_LONG: Final = gettext_noop("The job took longer than a job may and was stopped.")

#: Set when this worker process is asked to stop; its jobs stop then, too.
stopping = threading.Event()

Listener = Callable[[Job], None]


class Cancelled(Exception):
    """Somebody cancelled the job, or it is no longer this worker's; the work ends here."""


class JobFailed(Exception):
    """The work cannot go on; its text becomes the error of the job."""


class Control:
    """One running job, seen by its work. Belongs to the thread of the work."""

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
        """The work is so far. `rate` is per second and measured here when it is not given;
        `detail` is a short text of where it is; `outputs` is what came of it by now."""
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
        """The same for a program's own report. Only the newest of a moment is written."""
        self._pending = progress
        if time.monotonic() - self._written >= POLL_S or progress.stage != self.job.stage:
            self._write()

    def check(self) -> None:
        """Raises Cancelled when the job is to end, JobFailed when its time is over. While the job
        is paused this does not return."""
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
        """Let time pass, and `check` meanwhile: for work that must not be too fast."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            stopping.wait(min(rest, POLL_S))
            self.check()

    def flush(self) -> None:
        """Write what `progress` said last, if that is still to be written."""
        if self._pending is not None:
            self._write()

    def _poll(self) -> None:
        """Read the wishes of people from the row; stay here while one is to pause."""
        paused_at: float | None = None
        while True:
            if stopping.is_set():
                raise JobFailed(WORKER_STOPPED)
            wish = ledger.pending_command(self.job)
            if wish is ledger.Command.STOP:
                raise Cancelled
            if wish is ledger.Command.CONTINUE:
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
        """Progress and heartbeat into the row, and to whoever watches."""
        progress, self._pending = self._pending, None
        self._written = time.monotonic()
        ledger.note(self.job, progress)
        self._notify(self.job)

    def _rate(self, now: float, done: int) -> float | None:
        """Items per second since the last measure, of at least one POLL_S; None at the start."""
        if self._measured is None or done < self._measured[1]:
            self._measured = now, done
            return None
        since, before = self._measured
        if now - since < POLL_S:
            return self.job.rate if self.job.state == State.RUNNING else None
        self._measured = now, done
        return round((done - before) / (now - since), 1)
