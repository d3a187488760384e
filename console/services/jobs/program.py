"""Work in a separate program: start, reports, stop."""

import time
from collections.abc import Sequence

from django.conf import settings

from console.services.jobs.control import HEARTBEAT_S, POLL_S, Cancelled, Control, JobFailed
from console.services.jobs.models import Job
from console.services.jobs.paths import job_log
from console.services.jobs.process import JobProcess
from console.services.jobs.reports import Done, Failed, Progress


def run_program(job: Job, control: Control, command: Sequence[str]) -> Done:
    """Run the program to its end; the job's row keeps the end of the log."""
    process = JobProcess(command, folder=settings.BASE_DIR, log=job_log(job.pk))
    try:
        return _listen(job, control, process)
    finally:
        process.close()
        job.log_tail = process.log_tail()


def _listen(job: Job, control: Control, process: JobProcess) -> Done:
    last: Done | Failed | None = None
    log_due = 0.0
    while not process.has_ended():
        report = process.next_report(POLL_S)
        if isinstance(report, Done | Failed):
            last = report
        elif isinstance(report, Progress):
            control.report(report)
        if time.monotonic() >= log_due:
            log_due = time.monotonic() + HEARTBEAT_S
            job.log_tail = process.log_tail()
        try:
            control.check()
        except (Cancelled, JobFailed):
            if last is None:  # otherwise the program has just finished
                raise
            break
    if last is None:
        raise JobFailed(_exit_error(process.exit_code))
    if isinstance(last, Failed):
        raise JobFailed(last.message)
    return last


def _exit_error(code: int | None) -> str:
    """The error of a program that exited without a final report."""
    if code is not None and code < 0:
        return f"The process of the job was killed by signal {-code}."
    return f"The process of the job ended with code {code}; its log tells more."
