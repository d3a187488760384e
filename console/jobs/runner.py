"""Runs one job from its row to its end: the program, its reports, its heartbeat, its wishes.

Whatever happens the row ends in a final state, unless this process itself is killed; then
`ledger.reap` ends it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from django.conf import settings
from django.utils.translation import gettext_noop

from console.jobs import ledger
from console.jobs.models import Job, Kind
from console.jobs.places import job_log, lake_of, spark_run_dir
from console.jobs.process import JobProcess
from console.jobs.reports import Done, Failed, Moved
from console.jobs.states import State

logger = logging.getLogger(__name__)

POLL_S: Final = 1.0
HEARTBEAT_S: Final = 5.0
JOB_SECONDS_MAX: Final = 6 * 3600
"""A job that takes longer hangs."""

# Kept in the row in English, shown in the reader's language.
WORKER_STOPPED: Final = gettext_noop("The worker was stopped while the job ran. Start it again.")
TOOK_TOO_LONG: Final = gettext_noop("The job took longer than a job may and was stopped.")

#: Set when this worker process is asked to stop; its jobs stop then, too.
stopping = threading.Event()

Listener = Callable[[Job], None]


def command_of(kind: str, cluster: str, namesrv: str) -> list[str]:
    """The program that does a kind of job."""
    assert kind == Kind.INGEST
    master = ["--master", settings.SPARK_MASTER] if settings.SPARK_MASTER else []
    return [
        *(sys.executable, "-m", "spark_jobs", "ingest"),
        *("--namesrv", namesrv),
        *("--lake", str(lake_of(cluster))),
        *("--run-dir", str(spark_run_dir())),
        *master,
        "--progress-json",
        "--until-stdin-closes",
    ]


def run(job_id: int, *, tell: Listener, command: Sequence[str] | None = None) -> None:
    """Run a queued job to its end; `tell` hears of every change of its row.

    A job that was cancelled, or taken by another worker, is left alone.
    """
    queued = Job.objects.filter(pk=job_id).first()
    if queued is None:
        return
    namesrv = settings.CONSOLE_CLUSTERS.get(queued.cluster, "")
    inputs = {"namesrv": namesrv, "lake": str(lake_of(queued.cluster))}
    job = ledger.claim(job_id, f"{socket.gethostname()}:{os.getpid()}", inputs)
    if job is None:
        return
    tell(job)
    try:
        _follow(job, command or command_of(job.kind, job.cluster, namesrv), tell)
    except Exception as error:  # the shell of a job: whatever fails becomes its error
        logger.exception("job %s failed in its worker", job.pk)
        ledger.finish(job, State.FAILED, error=f"{type(error).__name__}: {error}")
    tell(job)


def _follow(job: Job, command: Sequence[str], tell: Listener) -> None:
    process = JobProcess(command, folder=settings.BASE_DIR, log=job_log(job.pk))
    try:
        outcome = _listen(job, process, tell)
    finally:
        process.close()
    job.log_tail = process.log_tail()
    if outcome is None:
        ledger.finish(job, State.CANCELLED)
    elif isinstance(outcome, Done):
        ledger.finish(job, State.SUCCEEDED, done=outcome)
    else:
        ledger.finish(job, State.FAILED, error=outcome.message)


def _listen(job: Job, process: JobProcess, tell: Listener) -> Done | Failed | None:
    """Follow the program to its end; returns what became of it, None when it is to be cancelled."""
    deadline = time.monotonic() + JOB_SECONDS_MAX
    heartbeat_due = 0.0
    last: Done | Failed | None = None
    while not process.has_ended():
        report = process.next_report(POLL_S)
        if isinstance(report, Done | Failed):
            last = report
        moved = report if isinstance(report, Moved) else None
        if moved is not None or time.monotonic() >= heartbeat_due:
            heartbeat_due = time.monotonic() + HEARTBEAT_S
            ledger.note(job, moved, process.log_tail())
            tell(job)
        if last is None and ledger.is_to_stop(job):
            return None
        if stopping.is_set():
            return last or Failed(message=WORKER_STOPPED)
        if time.monotonic() > deadline:
            return last or Failed(message=TOOK_TOO_LONG)
    return last or Failed(message=_last_words(process.exit_code))


def _last_words(code: int | None) -> str:
    """The error of a program that did not say itself how it ended."""
    if code is not None and code < 0:
        return f"The process of the job was killed by signal {-code}."
    return f"The process of the job ended with code {code}; its log tells more."
