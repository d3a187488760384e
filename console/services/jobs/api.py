"""REST resources of jobs: list, start, status, pause, resume, cancel, continue, files."""

from django.core.exceptions import PermissionDenied
from django.http import FileResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import read_limit
from console.api.views import ClusterResource
from console.services.jobs import actions, files, kinds, ledger
from console.services.jobs.models import Job
from console.services.jobs.serializers import (
    JobDetailSerializer,
    JobFileListSerializer,
    JobFileSerializer,
    JobKindListSerializer,
    JobKindSerializer,
    JobPageSerializer,
    JobRequestSerializer,
    JobSerializer,
)
from console.services.jobs.states import State
from console.services.jobs.views import download, find_job, jobs_of

CURSOR_DIGITS_MAX = 18


class JobResource(ClusterResource):
    """Base of resources with an action on a job."""

    writes_cluster = False

    def accepted(self, job: Job) -> Response:
        """202 with the job and its URL."""
        where = reverse("api-job", kwargs={"cluster": self.cluster.name, "number": job.pk})
        return Response(
            JobSerializer(job).data, status.HTTP_202_ACCEPTED, headers={"Location": where}
        )


class JobList(JobResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("kind", OpenApiTypes.STR, description="Only jobs of this kind."),
            OpenApiParameter("state", enum=State.values, description="Only jobs in this state."),
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 500; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=JobPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """The jobs of the cluster, newest first. Old jobs of each kind are deleted."""
        ledger.reap()
        params = request.query_params
        limit = read_limit(params.get("limit"))
        before = _read_cursor(params.get("cursor"))
        state = params.get("state", "")
        if state and state not in State.values:
            raise ValidationError({"state": [_("Unknown state.")]})
        jobs = jobs_of(self.cluster.name, params.get("kind", ""), state)
        older = jobs if before is None else jobs.filter(pk__lt=before)
        found = list(older.order_by("-pk")[: limit + 1])
        shown = found[:limit]
        return Response(
            {
                "items": JobSerializer(shown, many=True).data,
                "total": jobs.count(),
                "next_cursor": str(shown[-1].pk) if len(found) > limit else None,
            }
        )

    @extend_schema(request=JobRequestSerializer, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Start a job without inputs. Other kinds are started by resources of their area.

        409 when a job of the kind is active, 503 when the task queue does not answer.
        """
        asked = JobRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        kind = kinds.find(asked.validated_data["kind"])
        if kind is None or not kind.by_hand:
            known = ", ".join(each.name for each in kinds.by_hand())
            text = _("Jobs of this kind cannot be started here. Startable kinds: %(known)s")
            raise ValidationError({"kind": [text % {"known": known}]})
        return self.accepted(actions.start(request, self.cluster.name, kind))


class JobKindList(ClusterResource):
    @extend_schema(responses=JobKindListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The job kinds of the console."""
        return Response({"items": JobKindSerializer(kinds.known(), many=True).data})


class JobOne(ClusterResource):
    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """A job with progress, result or error, and the end of the log."""
        ledger.reap()
        return Response(JobDetailSerializer(find_job(self.cluster.name, number)).data)


class JobCancel(JobResource):
    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Cancel a job: a queued job at once, a running job after the work has stopped."""
        return self.accepted(actions.cancel(request, find_job(self.cluster.name, number)))


class JobPause(JobResource):
    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Pause a running job within a second. 409 for a kind without pause."""
        return self.accepted(actions.pause(request, find_job(self.cluster.name, number)))


class JobResume(JobResource):
    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Resume a paused job."""
        return self.accepted(actions.resume(request, find_job(self.cluster.name, number)))


class JobContinue(JobResource):
    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Start a new job that continues a failed or cancelled job."""
        return self.accepted(actions.continue_job(request, find_job(self.cluster.name, number)))


class JobFileList(ClusterResource):
    @extend_schema(responses=JobFileListSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """Files of a job that have not expired."""
        job = find_job(self.cluster.name, number)
        return Response({"items": JobFileSerializer(files.listing(job.pk), many=True).data})


class JobFileOne(ClusterResource):
    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, cluster: str, number: int, name: str) -> FileResponse:
        """A file of a job. Requires the permission to start jobs of the kind."""
        job = find_job(self.cluster.name, number)
        if not actions.may_control(request, job):
            raise PermissionDenied
        return download(job, name)


def _read_cursor(text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= CURSOR_DIGITS_MAX):
        raise ValidationError({"cursor": [_("Not a cursor of this list; start without one.")]})
    return int(text)
