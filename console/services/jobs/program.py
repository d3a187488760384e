"""Work in a separate program: start, reports, stop."""

import time
from collections.abc import Sequence
from typing import Final, Protocol

from django.conf import settings

from console.services.jobs.control import HEARTBEAT_S, POLL_S, Cancelled, Control, JobFailed
from console.services.jobs.models import Job
from console.services.jobs.paths import job_log
from console.services.jobs.process import JobProcess, ProgramEnded
from console.services.jobs.reports import Done, Failed, Progress, Report

#: Progress from the first moment until the first report of the program.
STARTING: Final = Progress(stage="start")


class RunningJob(Protocol):
    """A job at work outside of this process."""

    def next_report(self, timeout_s: float) -> Report | None: ...

    def has_ended(self) -> bool:
        """Whether the work has ended and all reports were read."""

    def exit_error(self) -> Exception:
        """The error of work that ended without a final report."""

    def close(self) -> None:
        """Stop the work."""

    def log_tail(self) -> str: ...


def run_program(job: Job, control: Control, command: Sequence[str]) -> Done:
    """Run the program to its end; the job's row keeps the end of the log."""
    control.report(STARTING)
    process = JobProcess(command, folder=settings.BASE_DIR, log=job_log(job.pk))
    try:
        return follow(job, control, process, STARTING)
    except ProgramEnded as ended:
        raise JobFailed(str(ended)) from None


def follow(job: Job, control: Control, work: RunningJob, progress: Progress) -> Done:
    """Pass the reports of the work to the job's row until the work ends; always closes the work.

    `progress` is the progress before the first report. The stage `start` is reported every POLL_S,
    so that pages show its elapsed time.
    """
    try:
        return _listen(job, control, work, progress)
    finally:
        work.close()
        job.log_tail = work.log_tail()


def _listen(job: Job, control: Control, work: RunningJob, progress: Progress) -> Done:
    last: Done | Failed | None = None
    log_due = 0.0
    while not work.has_ended():
        report = work.next_report(POLL_S)
        if isinstance(report, Done | Failed):
            last = report
        elif isinstance(report, Progress):
            progress = report
            control.report(progress)
        elif progress.stage == STARTING.stage:
            control.report(progress)
        if time.monotonic() >= log_due:
            log_due = time.monotonic() + HEARTBEAT_S
            job.log_tail = work.log_tail()
        try:
            control.check()
        except (Cancelled, JobFailed):
            if last is None:  # otherwise the work has just finished
                raise
            break
    if last is None:
        raise work.exit_error()
    if isinstance(last, Failed):
        raise JobFailed(last.message)
    return last
