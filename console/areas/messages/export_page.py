"""Page and REST resource that start an export of messages."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.areas.messages import export
from console.areas.messages.api import filter_from
from console.areas.messages.forms import QUEUE_CHARS_MAX, TOPIC_CHARS_MAX, BrowseForm
from console.areas.messages.send_page import list_url
from console.areas.messages.views import asked_in_address
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.masking import without_values
from console.frame.pages import ClusterPage, Crumb
from console.gateway.messages.browse import browse
from console.gateway.messages.filters import BODY_CHARS_MAX, SQL_CHARS_MAX, TAGS_CHARS_MAX, BodyTest
from console.services.exports.files import FORMATS, ROWS_MAX, ROWS_USUAL, SHEET_ROWS_MAX
from console.services.exports.serializers import ExportFileSerializer, ExportStartedSerializer
from console.services.jobs.errors import AlreadyActive
from console.web.dependencies import redis_problem

START_ACTION = "messages.export"


class ExportForm(BrowseForm):
    """Filter of the messages, file format and row limit."""

    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=list(FORMATS.items()))
    most = forms.IntegerField(label=gettext_lazy("Row limit"), min_value=1, max_value=ROWS_MAX)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        most = cleaned.get("most") or 0
        if cleaned.get("format") == "xlsx" and most > SHEET_ROWS_MAX:
            text = _("A sheet has at most %(most)s rows.")
            self.add_error("most", text % {"most": SHEET_ROWS_MAX})
        return cleaned

    def params(self) -> dict[str, Any]:
        """The parameters of the job, JSON-compatible."""
        fields = self.cleaned_data
        return {
            "topic": fields["topic"],
            "queue": fields["queue"],
            "begin_ms": fields["begin"],
            "end_ms": fields["end"],
            "tags": fields["tags"],
            "sql": fields["sql"],
            "body": fields["body"],
            "body_test": fields["body_test"] or BodyTest.TEXT.value,
            "format": fields["format"],
            "most": fields["most"],
        }


@needs(Need.WRITE)
class ExportPage(ClusterPage):
    """Start page of an export: number of messages, format, row limit."""

    writes_cluster = False
    template = "message/export.html"
    actions = {"post": START_ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        usual = {"format": "jsonl", "most": str(ROWS_USUAL), "body_test": "text"}
        return self.form(ExportForm(usual | asked_in_address(request.GET)))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = ExportForm(request.POST)
        if not form.is_valid():
            return self.form(form)
        params = form.params()
        try:
            with audited(request, START_ACTION, cluster=cluster, target=params["topic"]) as entry:
                job = export.begin(self.cluster, params, by=request.user)
                entry.after = {"job": job.pk, **without_values(cluster, params)}
        except AlreadyActive as active:
            job = active.job
        return redirect("jobs:detail", cluster, job.pk)

    def form(self, form: ExportForm) -> HttpResponse:
        is_valid = form.is_valid()
        total = None
        if is_valid:
            fields = form.cleaned_data
            answer = self.cluster.ask(
                browse,
                *(fields["topic"], fields["begin"], fields["end"], None, 1, fields["queue"]),
            )
            total = answer.value.total
        return self.show(
            title=_("Export messages"),
            crumbs=[Crumb(_("Messages"), list_url(self)), Crumb(_("Export"))],
            form=form,
            total=total,
            redis_problem=redis_problem(),
            status=200 if is_valid else 422,
        )


class MessageExportSerializer(ExportFileSerializer):
    """Filter of the messages, as in the list, and file format."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    queue = serializers.CharField(max_length=QUEUE_CHARS_MAX, default="", allow_blank=True)
    begin_ms = serializers.IntegerField(min_value=0, default=None, allow_null=True)
    end_ms = serializers.IntegerField(min_value=0, default=None, allow_null=True)
    tags = serializers.CharField(max_length=TAGS_CHARS_MAX, default="", allow_blank=True)
    sql = serializers.CharField(max_length=SQL_CHARS_MAX, default="", allow_blank=True)
    body = serializers.CharField(max_length=BODY_CHARS_MAX, default="", allow_blank=True)
    body_test = serializers.ChoiceField(
        choices=[test.value for test in BodyTest], default=BodyTest.TEXT.value
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        filter_from(attrs)
        return super().validate(attrs)


class MessageExports(ClusterResource):
    writes_cluster = False
    actions = {"post": START_ACTION}

    @extend_schema(
        request=MessageExportSerializer,
        responses={202: ExportStartedSerializer},
        examples=[
            OpenApiExample(
                "one tag as a sheet",
                {"topic": "orders", "tags": "paid", "format": "xlsx", "most": 10000},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Start an export: 202 with the job number; 409 while an export of the topic runs."""
        serializer = MessageExportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        params = dict(serializer.validated_data)
        with audited(request, START_ACTION, cluster=cluster, target=params["topic"]) as entry:
            job = export.begin(self.cluster, params, by=request.user)
            entry.after = {"job": job.pk, **without_values(cluster, params)}
        where = reverse("api-job", kwargs={"cluster": cluster, "number": job.pk})
        return Response({"job": job.pk}, status.HTTP_202_ACCEPTED, headers={"Location": where})
