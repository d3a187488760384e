"""Pages of jobs: list, detail, start, pause, resume, cancel, files."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.frame.pages import ClusterPage, Crumb, forbidden
from console.gateway import NotAllowedNow, now_ms
from console.project_files import COMMAND
from console.services.jobs import actions, files, kinds, ledger, spark
from console.services.jobs.drawn import RANGES, drawn
from console.services.jobs.errors import AlreadyActive, NoSuchFile, NoSuchJob
from console.services.jobs.models import Job
from console.services.jobs.states import State
from console.services.jobs.workers import last_answer
from console.web.dependencies import redis_problem

PAGE_JOBS = 25


def find_job(cluster: str, number: int) -> Job:
    """A job of a cluster. Raises NoSuchJob for an unknown or deleted job."""
    jobs = Job.objects.select_related("started_by").filter(cluster=cluster)
    job = jobs.filter(pk=number).first() if number < 2**63 else None
    if job is None:
        raise NoSuchJob(number)
    return job


def jobs_of(cluster: str, kind: str = "", state: str = "") -> QuerySet[Job]:
    """The jobs of a cluster, newest first, with optional filters by kind and state."""
    jobs = Job.objects.filter(cluster=cluster).select_related("started_by")
    if kind:
        jobs = jobs.filter(kind=kind)
    if state:
        jobs = jobs.filter(state=state)
    return jobs


class JobListPage(ClusterPage):
    """The jobs of a cluster, newest first, with warnings about missing requirements."""

    template = "jobs/list.html"
    part = "jobs/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        ledger.reap()
        kind, state = request.GET.get("kind", ""), request.GET.get("state", "")
        kind = kind if kinds.find(kind) else ""
        state = state if state in State.values else ""
        jobs = jobs_of(self.cluster.name, kind, state)
        page = Paginator(jobs, PAGE_JOBS).get_page(request.GET.get("page"))
        picture = drawn(jobs, request.GET.get("range", ""), now_ms(), midnight_ms())
        by_hand = [
            (each, actions.may_control(request, Job(cluster=cluster, kind=each.name)))
            for each in kinds.by_hand()
        ]
        return self.show(
            title=_("Jobs"),
            page=page,
            any_active=any(job.is_active for job in page),
            kinds=kinds.known(),
            states=State.choices,
            kind=kind,
            state=state,
            picture=picture,
            ranges=[(name, label) for name, (_ms, label) in RANGES.items()],
            filters=urlencode({"kind": kind, "state": state, "range": picture.range}),
            trace_jobs=by_hand[:1],
            maintenance=by_hand[1:],
            minutes=settings.JOB_MINUTES.get("ingest"),
            **({} if getattr(request, "htmx", False) else missing_requirements()),
        )


def midnight_ms() -> int:
    """The begin of the day in the console's time zone."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return int(today.timestamp() * 1000)


class MissingPart(ClusterPage):
    """What is missing to run jobs; the list of jobs polls this part."""

    template = "jobs/missing.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.show(title=_("Jobs"), **missing_requirements())


def missing_requirements() -> dict[str, Any]:
    """Return what jobs need: Redis, a worker, Spark."""
    no_redis = redis_problem()
    return {
        "redis_problem": no_redis,
        "asks_worker": not no_redis,
        "worker": None if no_redis else last_answer(),
        "command": COMMAND,
        "spark": spark.last_known(),
    }


class JobPage(ClusterPage):
    """One job: progress, results, error."""

    template = "jobs/detail.html"
    part = "jobs/detail_part.html"

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        ledger.reap()
        job = find_job(self.cluster.name, number)
        jobs_url = reverse("jobs:list", kwargs={"cluster": self.cluster.name})
        name = _("Job %(number)d") % {"number": job.pk}
        return self.show(
            title=name,
            crumbs=[Crumb(_("Jobs"), jobs_url), Crumb(name)],
            job=job,
            files=files.listing(job.pk),
            may_control=actions.may_control(request, job),
        )


class StartPage(ClusterPage):
    """Start of a job without inputs."""

    writes_cluster = False

    def get(self, request: HttpRequest, cluster: str, kind: str) -> HttpResponseBase:
        """A GET of the form's URL redirects to the list."""
        return redirect("jobs:list", self.cluster.name)

    def post(self, request: HttpRequest, cluster: str, kind: str) -> HttpResponseBase:
        known = kinds.find(kind)
        if known is None or not known.by_hand:
            raise Http404
        return run_and_redirect(request, lambda: actions.start(request, self.cluster.name, known))


class ControlPage(ClusterPage):
    """Base of buttons on the page of a job: `act` returns the job to show."""

    writes_cluster = False
    act: Callable[[HttpRequest, Job], Job]

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        return redirect("jobs:detail", self.cluster.name, number)

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        job = find_job(self.cluster.name, number)
        return run_and_redirect(request, lambda: type(self).act(request, job), job)


class CancelPage(ControlPage):
    act = staticmethod(actions.cancel)


class PausePage(ControlPage):
    act = staticmethod(actions.pause)


class ResumePage(ControlPage):
    act = staticmethod(actions.resume)


class ContinuePage(ControlPage):
    act = staticmethod(actions.continue_job)


def run_and_redirect(
    request: HttpRequest, act: Callable[[], Job], job: Job | None = None
) -> HttpResponseBase:
    """Run the action and redirect to the page of the job, with a message for a refused action."""
    try:
        job = act()
    except PermissionDenied:
        return not_allowed(request)
    except NotAllowedNow as refused:
        messages.info(request, str(refused.detail))
        job = refused.job if isinstance(refused, AlreadyActive) else job
    assert job is not None  # starting is refused with AlreadyActive only
    return redirect("jobs:detail", job.cluster, job.pk)


class FilePage(ClusterPage):
    """Download of a job file."""

    def get(self, request: HttpRequest, cluster: str, number: int, name: str) -> HttpResponseBase:
        job = find_job(self.cluster.name, number)
        if not actions.may_control(request, job):
            return not_allowed(request)
        return download(job, name)


def download(job: Job, name: str) -> FileResponse:
    """The file as a response. Raises NoSuchFile for an unknown or expired file."""
    path = files.path_of(job.pk, name)
    if path is None:
        raise NoSuchFile(name)
    # Browsers must never render message content as a page of the console.
    return FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=name,
        content_type="application/octet-stream",
    )


def not_allowed(request: HttpRequest) -> HttpResponse:
    return forbidden(request, _("Your role cannot control jobs of this kind."))
