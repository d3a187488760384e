"""Actions on jobs for pages and REST resources: authorised, audited, announced.

Errors: PermissionDenied without the permission of the job kind, NotAllowedNow in a state that
forbids the action.
"""

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from console.audit.recording import audited
from console.frame.access import Need, may
from console.frame.permissions import Target
from console.gateway import NotAllowedNow
from console.services.jobs import ledger, tasks
from console.services.jobs.feed import announce
from console.services.jobs.kinds import JobKind
from console.services.jobs.models import Job

AnyRequest = HttpRequest | Request


def may_control(request: AnyRequest, job: Job) -> bool:
    """Whether the account may start or control the job and download files."""
    kind = job.definition
    needs = [(kind.need if kind else Need.WRITE, Target("jobs", job.cluster))]
    if kind is not None and kind.reach is not None:
        needs += kind.reach(job)
    return all(may(request.user, need, target) for need, target in needs)


def start(request: AnyRequest, cluster: str, kind: JobKind) -> Job:
    """Start a job without inputs."""
    if not may_control(request, Job(cluster=cluster, kind=kind.name)):
        raise PermissionDenied
    with audited(request, "job.start", cluster=cluster, target=kind.name) as entry:
        job = tasks.start(cluster, kind.name, by=request.user)
        entry.target = label_of(job)
    return job


def cancel(request: AnyRequest, job: Job) -> Job:
    return _change(request, "job.cancel", job, ledger.cancel, _("The job has already ended."))


def pause(request: AnyRequest, job: Job) -> Job:
    def act(job: Job) -> bool:
        return job.may_pause and ledger.pause(job)

    return _change(request, "job.pause", job, act, _("The job cannot be paused now."))


def resume(request: AnyRequest, job: Job) -> Job:
    return _change(request, "job.resume", job, ledger.resume, _("The job is not paused."))


def continue_job(request: AnyRequest, job: Job) -> Job:
    """Start a new job that continues a failed or cancelled job."""
    _permit(request, job)
    with audited(request, "job.continue", cluster=job.cluster, target=label_of(job)) as entry:
        follower = tasks.continue_job(job, by=request.user)
        entry.after = {"job": follower.pk}
    return follower


def label_of(job: Job) -> str:
    """Label of a job in the audit list."""
    return f"{job.kind} #{job.pk} {job.scope}".rstrip()


def _change(
    request: AnyRequest, action: str, job: Job, act: Callable[[Job], bool], refusal: object
) -> Job:
    _permit(request, job)
    with audited(
        request, action, cluster=job.cluster, target=label_of(job), before={"state": job.state}
    ) as entry:
        if not act(job):
            raise NotAllowedNow(refusal)
        job.refresh_from_db()
        entry.after = {"state": job.state, "cancel_requested": job.cancel_requested}
    announce(job)
    return job


def _permit(request: AnyRequest, job: Job) -> None:
    if not may_control(request, job):
        raise PermissionDenied
