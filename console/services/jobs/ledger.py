"""All changes of job rows by pages, REST resources, tasks and the scheduler.

Every change is one UPDATE with the allowed previous states in the WHERE clause. Of two concurrent
changes only one succeeds: a job is either cancelled or claimed by a worker.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from console.services.jobs.errors import AlreadyActive
from console.services.jobs.files import forget_files
from console.services.jobs.models import SCOPE_CHARS_MAX, Job, Origin
from console.services.jobs.paths import job_log
from console.services.jobs.reports import Done, Progress, bounded
from console.services.jobs.states import ACTIVE, AT_WORK, State, before

#: Heartbeat timeout: the worker counts as lost.
LOST_AFTER: Final = timedelta(seconds=45)
#: Maximum time in the queue. A later job is not blocked by a job without a worker.
QUEUED_MAX: Final = timedelta(minutes=15)
ERROR_CHARS_MAX: Final = 2000
#: Jobs kept per cluster and kind; a new job deletes older rows.
JOBS_KEPT: Final = 200

# Rows store the English text; pages translate the text.
WORKER_LOST: Final = gettext_noop("The worker of the job is gone. Start the job again.")
NO_WORKER: Final = gettext_noop("No worker took the job. Start one: celery -A console worker.")


class Command(Enum):
    """The pending command for a job at work."""

    CONTINUE = "go on"
    PAUSE = "pause"
    STOP = "stop"


def enqueue(
    cluster: str,
    kind: str,
    *,
    by: AbstractBaseUser | AnonymousUser | None,
    origin: Origin,
    scope: str = "",
    inputs: Mapping[str, Any] | None = None,
) -> Job:
    """Insert a queued job. Raises AlreadyActive for an active job of the kind and scope."""
    reap()
    now = timezone.now()
    who = by if isinstance(by, User) else None
    try:
        with transaction.atomic():
            job = Job.objects.create(
                cluster=cluster,
                kind=kind,
                scope=scope[:SCOPE_CHARS_MAX],
                origin=origin,
                started_by=who,
                created_at=now,
                heartbeat_at=now,
                inputs=dict(inputs or {}),
            )
    except IntegrityError:
        same = Job.objects.filter(cluster=cluster, kind=kind, scope=scope[:SCOPE_CHARS_MAX])
        active = same.filter(state__in=ACTIVE).first()
        if active is None:  # the active job has just ended
            return enqueue(cluster, kind, by=by, origin=origin, scope=scope, inputs=inputs)
        raise AlreadyActive(active) from None
    _forget_oldest(cluster, kind)
    return job


def claim(job_id: int, worker: str) -> Job | None:
    """Claim a queued job for a worker; None for a job in another state."""
    now = timezone.now()
    taken = Job.objects.filter(pk=job_id, state=State.QUEUED).update(
        state=State.RUNNING, started_at=now, heartbeat_at=now, worker=worker[:128]
    )
    return Job.objects.get(pk=job_id) if taken else None


def note(job: Job, progress: Progress | None) -> bool:
    """Write progress and heartbeat; False when the job has left the worker."""
    changes: dict[str, Any] = {"heartbeat_at": timezone.now(), "log_tail": job.log_tail}
    if progress is not None:
        kept = bounded(progress)
        changes |= {
            "stage": kept.stage,
            "stage_started_at": _stage_started_at(job, kept),
            "percent": kept.percent,
            "done": kept.done,
            "total": kept.total,
            "rate": kept.rate,
            "detail": kept.detail,
            "spark_ui": kept.spark_ui or job.spark_ui,
        }
        if kept.outputs is not None:
            changes["outputs"] = dict(kept.outputs)
    for name, value in changes.items():
        setattr(job, name, value)
    return bool(Job.objects.filter(pk=job.pk, state__in=AT_WORK).update(**changes))


def finish(job: Job, state: State, *, done: Done | None = None, error: str = "") -> bool:
    """Write the final state; False for a job that has already ended."""
    said = error.replace("\x00", "")[:ERROR_CHARS_MAX]
    changes: dict[str, Any] = {"state": state, "finished_at": timezone.now(), "error": said}
    if done is not None:
        changes |= {"outputs": done.kept(), "done": done.done, "percent": 100, "stage": ""}
    changed = Job.objects.filter(pk=job.pk, state__in=before(state)).update(
        **changes, log_tail=job.log_tail, rate=None
    )
    job.refresh_from_db()
    return bool(changed)


def cancel(job: Job) -> bool:
    """Cancel a queued job, or request the stop of a job at work; False for an ended job."""
    if Job.objects.filter(pk=job.pk, state=State.QUEUED).update(
        state=State.CANCELLED, cancel_requested=True, finished_at=timezone.now()
    ):
        return True
    return bool(Job.objects.filter(pk=job.pk, state__in=AT_WORK).update(cancel_requested=True))


def pause(job: Job) -> bool:
    """Pause a running job at the next poll; False in another state or after a cancel."""
    running = Job.objects.filter(pk=job.pk, state=State.RUNNING, cancel_requested=False)
    return bool(running.update(state=State.PAUSED, rate=None))


def resume(job: Job) -> bool:
    """Resume a paused job; False in another state."""
    paused = Job.objects.filter(pk=job.pk, state=State.PAUSED)
    return bool(paused.update(state=State.RUNNING))


def pending_command(job: Job) -> Command:
    """The pending command of the job's row."""
    row = Job.objects.filter(pk=job.pk).values("state", "cancel_requested").first()
    if row is None or row["state"] not in AT_WORK or row["cancel_requested"]:
        return Command.STOP
    job.state = row["state"]
    return Command.PAUSE if row["state"] == State.PAUSED else Command.CONTINUE


def reap(now: datetime | None = None) -> int:
    """Mark jobs as failed after a lost worker or a queue timeout; returns the count."""
    moment = now or timezone.now()
    lost = Job.objects.filter(state__in=AT_WORK, heartbeat_at__lt=moment - LOST_AFTER).update(
        state=State.FAILED,
        finished_at=moment,
        rate=None,
        error=WORKER_LOST,
    )
    ignored = Job.objects.filter(state=State.QUEUED, created_at__lt=moment - QUEUED_MAX).update(
        state=State.FAILED,
        finished_at=moment,
        error=NO_WORKER,
    )
    return lost + ignored


def _stage_started_at(job: Job, progress: Progress) -> datetime | None:
    if not progress.stage:
        return None
    return job.stage_started_at if job.stage == progress.stage else timezone.now()


def _forget_oldest(cluster: str, kind: str) -> None:
    rows = Job.objects.filter(cluster=cluster, kind=kind).exclude(state__in=ACTIVE)
    keys = list(rows.values_list("pk", flat=True)[JOBS_KEPT : JOBS_KEPT * 2])
    if keys:
        Job.objects.filter(pk__in=keys).delete()
        for key in keys:
            job_log(key).unlink(missing_ok=True)
            forget_files(key)
