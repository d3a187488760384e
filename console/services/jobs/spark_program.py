"""Spark jobs: on the warm Spark of the service, or as a program with its own Spark (cold start).

A job runs cold when the service is disabled (CONSOLE_SPARK_IDLE_MINUTES=0), cannot be started,
refuses the job, or ends in the middle of the job. A job may run again after a part of its work: the
lake's commits are atomic. The old service has ended before the cold start begins, so a job never
runs twice at the same time.
"""

import contextlib
import json
import logging
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final

from django.conf import settings

from console.services.jobs.control import Control
from console.services.jobs.models import Job
from console.services.jobs.paths import spark_service_log
from console.services.jobs.process import STOP_GRACE_S, end_of_log
from console.services.jobs.program import STARTING, follow, run_program
from console.services.jobs.report_stream import ReportStream
from console.services.jobs.reports import Accepted, Done, Failed, Progress, Refused, Report
from console.services.jobs.spark_service import ServiceConnection, ServiceUnavailable, service

log = logging.getLogger(__name__)

#: Connections for a job before its cold start: a service may end after it accepted a connection.
ATTEMPTS: Final = 2
_POLL_S: Final = 0.1


class NotRun(Exception):
    """The service has not run the job to its end, with the reason."""


class NotStarted(NotRun):
    """The service ended before it started the job."""


def run_spark_program(job: Job, control: Control, arguments: Sequence[str]) -> Done:
    """Run `python -m spark_jobs ARGUMENTS` to its end, on the warm Spark when possible."""
    if settings.SPARK_IDLE_MINUTES:
        try:
            return _run_warm(job, control, arguments)
        except (NotRun, ServiceUnavailable) as problem:
            control.check()
            service.stop_ended()
            log.warning("job %s continues with a cold start of Spark: %s", job.pk, problem)
    command = [sys.executable, "-m", "spark_jobs", *arguments, "--until-stdin-closes"]
    return run_program(job, control, command)


def _run_warm(job: Job, control: Control, arguments: Sequence[str]) -> Done:
    def starting() -> None:
        control.report(STARTING)
        control.check()

    for _ in range(ATTEMPTS):
        connection = service.connect(starting)
        with contextlib.suppress(NotStarted):
            return follow(job, control, ServiceJob(connection, arguments), Progress())
        control.check()
    raise NotRun("the Spark service ended before it started the job")


class ServiceJob:
    """A job on the service."""

    def __init__(self, connection: ServiceConnection, arguments: Sequence[str]) -> None:
        self._connection = connection
        self._log = spark_service_log()
        self._log_begin = self._log_size()
        self._waited = self._accepted = self._has_outcome = False
        self._refused: Refused | None = None
        stream = connection.socket.makefile("rb")
        self._reports = ReportStream(stream)
        # An ended service closes the stream, too.
        with contextlib.suppress(OSError):
            request = json.dumps({"arguments": [*arguments]})
            connection.socket.sendall(request.encode() + b"\n")

    def next_report(self, timeout_s: float) -> Report | None:
        """The next report of the work; None after the timeout or the end of the stream."""
        report = self._reports.next_report(timeout_s)
        if isinstance(report, Accepted):
            self._accepted = True
            if self._waited:  # the earlier log is of other jobs
                self._log_begin = self._log_size()
        elif isinstance(report, Refused):
            self._refused = report
        elif isinstance(report, Done | Failed):
            self._has_outcome = True
        elif isinstance(report, Progress) and report.stage == "wait":
            self._waited = True
        return report

    def has_ended(self) -> bool:
        """Whether the service closed the stream, and all reports were read."""
        return self._reports.has_ended()

    def exit_error(self) -> Exception:
        """Why there is no outcome."""
        if self._refused is not None:
            return NotRun(self._refused.message)
        if self._accepted:
            return NotRun("the Spark service or its Java ended in the middle of the job")
        return NotStarted()

    def close(self) -> None:
        """Cancel a running job. A service that does not end the job in time, or that ended in the
        middle of the job, is killed."""
        with contextlib.suppress(OSError):
            self._connection.socket.shutdown(socket.SHUT_WR)
        deadline_s = time.monotonic() + STOP_GRACE_S
        while not self.has_ended() and time.monotonic() < deadline_s:
            self.next_report(_POLL_S)
        if self._accepted and not self._has_outcome:
            self._connection.kill_service()
        self._connection.close()

    def log_tail(self) -> str:
        """The end of the service's log since the start of the job."""
        return end_of_log(self._log, self._log_begin)

    def _log_size(self) -> int:
        with contextlib.suppress(OSError):
            return self._log.stat().st_size
        return 0
