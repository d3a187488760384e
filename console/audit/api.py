"""Read-only REST resources of the audit log."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError as Invalid
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import LIMIT_DEFAULT, LIMIT_MAX, read_limit
from console.api.views import DeclaredParameters
from console.audit.filters import EXACT, AuditFilter
from console.audit.models import AuditRow, Result, Via
from console.audit.views import NUMBER_MAX, read_cursor, row_dict
from console.frame.access import Need, needs


class AuditRowSerializer(serializers.Serializer[Any]):
    """One action. `finished_at` is null for running and interrupted actions."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    username = serializers.CharField()
    role = serializers.CharField()
    token = serializers.CharField(help_text="Name of the API token; empty for a session.")
    via = serializers.ChoiceField(choices=Via.choices)
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="Network address of the client."
    )
    request_id = serializers.CharField()
    action = serializers.CharField()
    cluster = serializers.CharField()
    target = serializers.CharField()
    result = serializers.ChoiceField(choices=Result.choices)
    reason = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    outcomes = serializers.JSONField(allow_null=True)


class AuditPageSerializer(serializers.Serializer[Any]):
    items = AuditRowSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


MEANINGS = {
    **dict.fromkeys(EXACT, "Exact value."),
    "target": "Part of the target's name.",
    "since": "A time in ISO 8601, or milliseconds since 1970.",
    "until": "Likewise.",
}


@needs(Need.ADMIN)
class AuditList(DeclaredParameters):
    @extend_schema(
        parameters=[
            *(
                OpenApiParameter(name, OpenApiTypes.STR, description=text)
                for name, text in MEANINGS.items()
            ),
            OpenApiParameter(
                "limit",
                OpenApiTypes.INT,
                description=f"1 to {LIMIT_MAX}; {LIMIT_DEFAULT} if absent.",
            ),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=AuditPageSerializer,
    )
    def get(self, request: Request) -> Response:
        """List audited actions with user and result, newest first."""
        params = request.query_params
        limit = read_limit(params.get("limit"))
        cursor = params.get("cursor", "")
        before = read_cursor(cursor)
        try:
            found = AuditFilter.read(params).rows
        except ValidationError as error:
            raise Invalid(error.message_dict) from error
        if cursor and before is None:
            raise Invalid({"cursor": [_("Not a cursor of this list; start without one.")]})
        rows = list((found if before is None else found.filter(pk__lt=before))[: limit + 1])
        shown = rows[:limit]
        return Response(
            {
                "items": [row_dict(row) for row in shown],
                "total": found.count(),
                "next_cursor": str(shown[-1].pk) if len(rows) > limit else None,
            }
        )


@needs(Need.ADMIN)
class AuditOne(DeclaredParameters):
    @extend_schema(responses=AuditRowSerializer)
    def get(self, request: Request, number: int) -> Response:
        """Get one audit row."""
        row = AuditRow.objects.filter(pk=number).first() if number < NUMBER_MAX else None
        if row is None:
            raise Http404
        return Response(row_dict(row))
