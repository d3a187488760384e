"""Pages about jobs: what runs and ran, one job in detail, start, cancel."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.jobs import ledger, spark
from console.jobs.errors import AlreadyActive, NoSuchJob
from console.jobs.feed import announce
from console.jobs.models import Job, Kind
from console.jobs.tasks import start
from console.pages import ClusterPage, Crumb
from console.services import redis_problem

PAGE_JOBS = 25


def job_of(cluster: str, number: int) -> Job:
    """One job of a cluster; NoSuchJob when there is none (any more)."""
    job = Job.objects.select_related("started_by").filter(cluster=cluster, pk=number).first()
    if job is None:
        raise NoSuchJob(number)
    return job


class JobListPage(ClusterPage):
    """The jobs of one cluster, newest first, and what is missing to run any."""

    template = "jobs/list.html"
    part = "jobs/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        ledger.reap()
        jobs = Job.objects.filter(cluster=self.cluster.name).select_related("started_by")
        page = Paginator(jobs, PAGE_JOBS).get_page(request.GET.get("page"))
        return self.show(
            title=_("Jobs"),
            page=page,
            any_active=any(job.is_active for job in page),
            minutes=settings.INGEST_MINUTES,
            redis_problem=redis_problem(),
            spark=None if getattr(request, "htmx", False) else spark.availability(),
        )


class JobPage(ClusterPage):
    """One job: where it is, what it did, why it failed."""

    template = "jobs/detail.html"
    part = "jobs/detail_part.html"

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        ledger.reap()
        job = job_of(self.cluster.name, number)
        jobs_url = reverse("jobs:list", kwargs={"cluster": self.cluster.name})
        name = _("Job %(number)d") % {"number": job.pk}
        return self.show(
            title=name,
            crumbs=[Crumb(_("Jobs"), jobs_url), Crumb(name)],
            job=job,
        )


class StartPage(ClusterPage):
    """The start button."""

    def get(self, request: HttpRequest, cluster: str, kind: str) -> HttpResponseBase:
        """Whoever comes back to the address of the button lands on the list."""
        return redirect("jobs:list", self.cluster.name)

    def post(self, request: HttpRequest, cluster: str, kind: str) -> HttpResponseBase:
        if kind not in Kind.values:
            raise Http404
        try:
            job = start(self.cluster.name, Kind(kind), by=request.user)
        except AlreadyActive as active:
            messages.info(request, str(active.detail))
            job = active.job
        return redirect("jobs:detail", self.cluster.name, job.pk)


class CancelPage(ClusterPage):
    """The cancel button."""

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        return redirect("jobs:detail", self.cluster.name, number)

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        job = job_of(self.cluster.name, number)
        if ledger.cancel(job):
            job.refresh_from_db()
            announce(job)
        else:
            messages.info(request, _("The job was over already."))
        return redirect("jobs:detail", self.cluster.name, number)
