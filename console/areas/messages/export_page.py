"""Starting exports: the page, and its REST twin."""

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
from console.areas.messages import exports
from console.areas.messages.api import wanted_by
from console.areas.messages.forms import QUEUE_CHARS_MAX, TOPIC_CHARS_MAX, BrowseForm
from console.areas.messages.send_page import list_url
from console.areas.messages.views import asked_in_address
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage, Crumb
from console.gateway.messages.browse import browse
from console.gateway.messages.filters import BODY_CHARS_MAX, SQL_CHARS_MAX, TAGS_CHARS_MAX, BodyTest
from console.services.exports.files import FORMATS, ROWS_MAX, ROWS_USUAL, SHEET_ROWS_MAX
from console.services.exports.serializers import ExportFileSerializer, ExportStartedSerializer
from console.services.jobs.errors import AlreadyActive
from console.web.dependencies import redis_problem

START_ACTION = "messages.export"


class ExportForm(BrowseForm):
    """What the list shows, the kind of file, and how many rows it may have."""

    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=list(FORMATS.items()))
    most = forms.IntegerField(label=gettext_lazy("Rows at most"), min_value=1, max_value=ROWS_MAX)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        most = cleaned.get("most") or 0
        if cleaned.get("format") == "xlsx" and most > SHEET_ROWS_MAX:
            text = _("A sheet may have %(most)s rows.")
            self.add_error("most", text % {"most": SHEET_ROWS_MAX})
        return cleaned

    def wish(self) -> dict[str, Any]:
        """What the job needs to know, as JSON."""
        given = self.cleaned_data
        return {
            "topic": given["topic"],
            "queue": given["queue"],
            "begin_ms": given["begin"],
            "end_ms": given["end"],
            "tags": given["tags"],
            "sql": given["sql"],
            "body": given["body"],
            "body_test": given["body_test"] or BodyTest.TEXT.value,
            "format": given["format"],
            "most": given["most"],
        }


@needs(Need.WRITE)
class ExportPage(ClusterPage):
    """Before an export: how much it is about, the format, the bound."""

    template = "message/export.html"
    actions = {"post": START_ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        usual = {"format": "jsonl", "most": str(ROWS_USUAL), "body_test": "text"}
        return self.form(ExportForm(usual | asked_in_address(request.GET)))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = ExportForm(request.POST)
        if not form.is_valid():
            return self.form(form)
        wish = form.wish()
        try:
            with audited(request, START_ACTION, cluster=cluster, target=wish["topic"]) as entry:
                job = exports.begin(self.cluster, wish, by=request.user)
                entry.after = {"job": job.pk, **wish}
        except AlreadyActive as active:
            job = active.job
        return redirect("jobs:detail", cluster, job.pk)

    def form(self, form: ExportForm) -> HttpResponse:
        is_valid = form.is_valid()
        total = None
        if is_valid:
            given = form.cleaned_data
            answer = self.cluster.ask(
                browse,
                *(given["topic"], given["begin"], given["end"], None, 1, given["queue"]),
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
    """Which messages, as the list asks for them, and the kind of file."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    queue = serializers.CharField(max_length=QUEUE_CHARS_MAX, default="", allow_blank=True)
    begin_ms = serializers.IntegerField(min_value=0, default=None, allow_null=True)
    end_ms = serializers.IntegerField(min_value=0, default=None, allow_null=True)
    tags = serializers.CharField(max_length=TAGS_CHARS_MAX, default="", allow_blank=True)
    sql = serializers.CharField(max_length=SQL_CHARS_MAX, default="", allow_blank=True)
    body = serializers.CharField(max_length=BODY_CHARS_MAX, default="", allow_blank=True)
    body_test = serializers.ChoiceField(
        choices=[each.value for each in BodyTest], default=BodyTest.TEXT.value
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        wanted_by(given)
        return super().validate(given)


class Exports(ClusterResource):
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
        """Start an export: 202 with its job. 409 while the topic has one."""
        serializer = MessageExportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wish = dict(serializer.validated_data)
        with audited(request, START_ACTION, cluster=cluster, target=wish["topic"]) as entry:
            job = exports.begin(self.cluster, wish, by=request.user)
            entry.after = {"job": job.pk, **wish}
        where = reverse("api-job", kwargs={"cluster": cluster, "number": job.pk})
        return Response({"job": job.pk}, status.HTTP_202_ACCEPTED, headers={"Location": where})
