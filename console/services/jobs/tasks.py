"""Celery tasks of jobs: execution, enqueueing, schedule.

`celery -A console worker` runs the tasks; `celery -A console beat` calls `start_everywhere` for
each kind of `settings.JOB_MINUTES`, and `reap_lost` every minute.
"""

import logging
from collections.abc import Mapping
from typing import Any

from celery import shared_task
from celery.signals import worker_process_shutdown, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import close_old_connections
from kombu.exceptions import OperationalError

from console.services.jobs import control, files, kinds, ledger, runner, spark
from console.services.jobs.errors import AlreadyActive, NotContinuable, QueueDown
from console.services.jobs.feed import announce
from console.services.jobs.models import Job, Origin
from console.services.jobs.spark_service import service
from console.services.jobs.states import State
from console.web.dependencies import redis_problem

log = logging.getLogger(__name__)


def start(
    cluster: str,
    kind: str,
    *,
    scope: str = "",
    inputs: Mapping[str, Any] | None = None,
    by: AbstractBaseUser | AnonymousUser | None = None,
    origin: Origin = Origin.PERSON,
) -> Job:
    """Enqueue a job. The caller has checked the permission of `by`.

    `inputs` are JSON parameters of the work. Raises AlreadyActive for an active job of the kind and
    scope, QueueDown when the task queue does not answer.
    """
    if problem := redis_problem():
        raise QueueDown(problem)
    job = ledger.enqueue(cluster, kind, by=by, origin=origin, scope=scope, inputs=inputs)
    try:
        run_job.apply_async((job.pk,), retry=False)
    except OperationalError as error:
        ledger.finish(job, State.FAILED, error=f"The task queue does not answer: {error}")
        raise QueueDown(str(error)) from error
    announce(job)
    return job


def continue_job(job: Job, *, by: AbstractBaseUser | AnonymousUser | None) -> Job:
    """Start a job that continues a failed or cancelled job, named in the inputs.

    Raises NotContinuable for other states and for kinds without `can_continue`.
    """
    if not job.may_continue:
        raise NotContinuable(job.pk)
    inputs = {**job.inputs, "continues": job.pk}
    return start(job.cluster, job.kind, scope=job.scope, inputs=inputs, by=by)


@shared_task(name="console.jobs.run")
def run_job(job_id: int) -> None:
    """Run a job. A redelivered task finds the job claimed."""
    close_old_connections()
    try:
        runner.run(job_id, notify=announce)
    finally:
        close_old_connections()


@shared_task(name="console.jobs.start_everywhere")
def start_everywhere(name: str) -> None:
    """Start a job of the kind on every cluster without an active job of the kind."""
    kind = kinds.find(name)
    if kind is None or not settings.JOB_MINUTES.get(
        name
    ):  # disabled after the start of the scheduler
        return
    if kind.uses_spark and not (availability := spark.availability()).usable:
        log.info("no %s on schedule: %s", name, availability.reason)
        return
    for cluster in settings.CONSOLE_CLUSTERS:
        try:
            start(cluster, name, origin=Origin.SCHEDULE)
        except AlreadyActive as active:
            log.info("no %s of %s on schedule: %s", name, cluster, active.detail)


@shared_task(name="console.jobs.reap_lost")
def reap_lost() -> None:
    """Fail jobs of lost workers, and delete expired files."""
    ledger.reap()
    files.expire()


@worker_shutting_down.connect(weak=False)
def _stop_jobs(**_: Any) -> None:
    """Stop running jobs: a worker waits for its tasks at shutdown."""
    control.stopping.set()


@worker_shutdown.connect(weak=False)
@worker_process_shutdown.connect(weak=False)
def _stop_spark(**_: Any) -> None:
    """Stop the Spark service of this process after the last task."""
    service.stop()
