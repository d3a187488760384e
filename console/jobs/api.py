"""REST resources of jobs: list, start, look, cancel."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import read_limit
from console.api.views import ClusterResource
from console.gateway import NotAllowedNow
from console.jobs import ledger
from console.jobs.feed import announce
from console.jobs.models import Job, Kind, Origin
from console.jobs.states import State
from console.jobs.tasks import start
from console.jobs.views import job_of


class JobSerializer(serializers.Serializer[Any]):
    """One job. Times are null for what has not happened yet."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    state = serializers.ChoiceField(choices=State.choices)
    origin = serializers.ChoiceField(choices=Origin.choices)
    started_by = serializers.CharField(allow_null=True, help_text="Null for the schedule.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    cancel_requested = serializers.BooleanField()
    stage = serializers.CharField()
    percent = serializers.FloatField()
    rows = serializers.IntegerField(help_text="Messages read so far.")
    rows_total = serializers.IntegerField(allow_null=True)
    rate = serializers.FloatField(allow_null=True, help_text="Messages per second while reading.")
    spark_ui = serializers.CharField(help_text="Spark's own page, while the job runs.")
    inputs = serializers.DictField()
    outputs = serializers.DictField()
    error = serializers.CharField()


class JobDetailSerializer(JobSerializer):
    log_tail = serializers.CharField(help_text="The end of what its program wrote to its log.")


class JobPageSerializer(serializers.Serializer[Any]):
    items = JobSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class JobRequestSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Kind.choices, default=Kind.INGEST)


class JobList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 500; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=JobPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """The jobs of the cluster, newest first. The newest of each kind are kept."""
        ledger.reap()
        limit = read_limit(request.query_params.get("limit"))
        before = _read_cursor(request.query_params.get("cursor"))
        jobs = Job.objects.filter(cluster=self.cluster.name).select_related("started_by")
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
        """Start a job. 409 when one of its kind waits or runs, 503 when no worker can be told."""
        asked = JobRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        kind = Kind(asked.validated_data["kind"])
        job = start(self.cluster.name, kind, by=request.user)
        where = reverse("api-job", kwargs={"cluster": self.cluster.name, "number": job.pk})
        return Response(
            JobSerializer(job).data, status.HTTP_202_ACCEPTED, headers={"Location": where}
        )


class JobOne(ClusterResource):
    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One job with its progress, result or error, and the end of its log."""
        ledger.reap()
        return Response(JobDetailSerializer(job_of(self.cluster.name, number)).data)


class JobCancel(ClusterResource):
    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Cancel a job: at once while it waits; while it runs its process is stopped first."""
        job = job_of(self.cluster.name, number)
        if not ledger.cancel(job):
            raise NotAllowedNow(_("The job was over already."))
        job.refresh_from_db()
        announce(job)
        return Response(JobSerializer(job).data, status.HTTP_202_ACCEPTED)


def _read_cursor(text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ValidationError({"cursor": [_("Not a cursor of this list; start without one.")]})
    return int(text)
