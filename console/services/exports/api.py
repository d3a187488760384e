"""REST resource of list exports."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.tables import SEARCH_CHARS_MAX
from console.services.exports import export_job, tables
from console.services.exports.serializers import ExportFileSerializer, ExportStartedSerializer
from console.services.exports.views import START_ACTION, check_table, table_named

NAME_CHARS_MAX = 64


class TableExportSerializer(ExportFileSerializer):
    """The list with search, filter and ordering, and the file format."""

    table = serializers.ChoiceField(choices=tables.known())
    q = serializers.CharField(max_length=SEARCH_CHARS_MAX, default="", allow_blank=True)
    filter = serializers.CharField(
        max_length=NAME_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="The `type` of topics, `show` of groups, `role` of clients.",
    )
    ordering = serializers.CharField(
        max_length=NAME_CHARS_MAX,
        default="name",
        help_text="An ordering of the resource of the list.",
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        table = tables.find(values["table"])
        assert table is not None
        if values["filter"] and values["filter"] not in table.choices:
            raise ValidationError({"filter": [_expected(table.choices)]})
        orderings = table.listing.orderings if table.listing else ["name"]
        if values["ordering"] not in orderings:
            raise ValidationError({"ordering": [_expected(orderings)]})
        if values["q"] and table.listing is None:
            raise ValidationError({"q": ["This list has no search."]})
        return super().validate(values)


class TableExports(ClusterResource):
    writes_cluster = False
    actions = {"post": START_ACTION}

    @extend_schema(
        request=TableExportSerializer,
        responses={202: ExportStartedSerializer},
        examples=[
            OpenApiExample(
                "groups that are behind, highest lag first",
                {"table": "groups", "filter": "behind", "ordering": "-lag", "format": "xlsx"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Export a list: 202 with the job; 409 while an export of the list is active.

        Columns have the field names of the list resource. Unknown values are null, or empty cells;
        the outputs of the job count the brokers with missing metrics.
        """
        serializer = TableExportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        inputs = dict(serializer.validated_data)
        check_table(request, cluster, table_named(inputs["table"]))
        with audited(request, START_ACTION, cluster=cluster, target=inputs["table"]) as entry:
            job = export_job.begin(self.cluster, inputs, by=request.user)
            entry.after = {"job": job.pk, **inputs}
        location = reverse("api-job", kwargs={"cluster": cluster, "number": job.pk})
        return Response({"job": job.pk}, status.HTTP_202_ACCEPTED, headers={"Location": location})


def _expected(names: Any) -> str:
    return f"Expected one of: {', '.join(names)}" if names else "This list has none."
