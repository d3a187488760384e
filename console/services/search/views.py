"""Search as a page, for browsers without scripts, and as a REST resource, for the palette."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import FailureSerializer
from console.api.views import ClusterResource
from console.frame.pages import ClusterPage
from console.services.search.engine import KINDS, TEXT_CHARS_MAX, search


class SearchPage(ClusterPage):
    """Search results for a text."""

    template = "search/search.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        text = request.GET.get("q", "").strip()[:TEXT_CHARS_MAX]
        result = search(request, self.cluster, text)
        entries = [(KINDS[entry.kind], entry) for entry in result.entries]
        return self.show(title=_("Search"), text=text, result=result, entries=entries)


class EntrySerializer(serializers.Serializer[Any]):
    """A search result."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    kind_title = serializers.SerializerMethodField()
    title = serializers.CharField()
    note = serializers.CharField()
    url = serializers.CharField(help_text="Page of the result in this console.")

    def get_kind_title(self, entry: Any) -> str:
        return str(KINDS[entry.kind])


class SearchSerializer(serializers.Serializer[Any]):
    items = EntrySerializer(many=True)
    trouble = serializers.CharField(help_text="Error of the search for names, or empty.")
    failures = FailureSerializer(many=True)


class SearchResource(ClusterResource):
    @extend_schema(
        operation_id="search_cluster",
        parameters=[OpenApiParameter("q", OpenApiTypes.STR, description="At most 255 characters.")],
        responses=SearchSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Topics, groups, brokers, pages, actions and messages that match a text, best first."""
        result = search(request, self.cluster, request.query_params.get("q", ""))
        return Response(
            {
                "items": EntrySerializer(result.entries, many=True).data,
                "trouble": result.trouble,
                "failures": FailureSerializer(result.failures, many=True).data,
            }
        )
