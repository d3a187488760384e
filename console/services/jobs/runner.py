"""Execution of a job in a worker.

The row always reaches a final state. After a kill of the worker process, `ledger.reap` writes the
final state.
"""

import logging
import os
import socket
from typing import Final

from django.utils.translation import gettext_noop

from console.services.jobs import kinds, ledger
from console.services.jobs.control import Cancelled, Control, JobFailed, Listener
from console.services.jobs.files import FilesTooLarge
from console.services.jobs.models import Job
from console.services.jobs.reports import Done
from console.services.jobs.states import State

log = logging.getLogger(__name__)

UNKNOWN_KIND: Final = gettext_noop("The console has no job kind of this name.")


def run(job_id: int, *, notify: Listener) -> None:
    """Run a queued job to its end; `notify` is called after every change of the row.

    Cancelled jobs and jobs of other workers are ignored.
    """
    job = ledger.claim(job_id, f"{socket.gethostname()}:{os.getpid()}")
    if job is None:
        return
    notify(job)
    try:
        done = _work(job, notify)
    except Cancelled:
        ledger.finish(job, State.CANCELLED)
    except (JobFailed, FilesTooLarge) as failed:
        ledger.finish(job, State.FAILED, error=str(failed))
    except Exception as error:  # top level of a job: any exception becomes the error of the job
        log.exception("job %s failed in its worker", job.pk)
        ledger.finish(job, State.FAILED, error=f"{type(error).__name__}: {error}")
    else:
        ledger.finish(job, State.SUCCEEDED, done=done)
    notify(job)


def _work(job: Job, notify: Listener) -> Done:
    kind = kinds.find(job.kind)
    if kind is None:
        raise JobFailed(UNKNOWN_KIND)
    control = Control(job, notify, kind.seconds_max)
    try:
        return kind.work(job, control)
    finally:
        control.flush()
