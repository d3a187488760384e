"""The REST resource of the area `topology`."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource, told_with
from console.areas.topology.asking import ask_selection
from console.areas.topology.reading import LIMIT_MAX, read_view
from console.areas.topology.selection import NODES_MAX, STEPS_MAX
from console.areas.topology.serializers import TopologySerializer
from console.gateway import NotFound

PARAMETERS = [
    OpenApiParameter(
        "q", description="Words of names; the neighbours of matching objects are included."
    ),
    OpenApiParameter(
        "focus", description="Key of an object, like `topic:orders`: only its neighbours."
    ),
    OpenApiParameter(
        "steps",
        OpenApiTypes.INT,
        description=f"Distance of neighbours from `focus`, 1 (default) to {STEPS_MAX}.",
    ),
    OpenApiParameter(
        "collapse", description="Kinds with one node for all objects, separated by commas."
    ),
    OpenApiParameter("system", OpenApiTypes.BOOL, description="Include system objects."),
    OpenApiParameter("retry", OpenApiTypes.BOOL, description="Include retry and DLQ topics."),
    OpenApiParameter(
        "limit",
        OpenApiTypes.INT,
        description=f"Maximum number of nodes, 1 to {LIMIT_MAX}; default {NODES_MAX}.",
    ),
]


class TopologyResource(ClusterResource):
    @extend_schema(parameters=PARAMETERS, responses=TopologySerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Name servers, brokers, topics, producer and consumer groups, and their connections.

        From heartbeats, offsets and broker statistics, without traces. Objects with trouble and
        with the most traffic come first where `limit` leaves objects out.
        """
        reading = read_view(request.query_params)
        if reading.errors:
            raise ValidationError(reading.errors)
        answer, selection = ask_selection(self.cluster, reading.view)
        if reading.view.focus and selection.focus is None:
            text = gettext_lazy("The cluster has no object “{key}”.")
            raise NotFound(format_lazy(text, key=reading.view.focus), failures=answer.failures)
        body = {
            "nodes": selection.nodes,
            "edges": selection.edges,
            "nodes_left_out": selection.nodes_left_out,
            "edges_left_out": selection.edges_left_out,
            "system_hidden": selection.system_hidden,
            "retry_hidden": selection.retry_hidden,
            "unmeasured": answer.value.unmeasured,
            "clients_left_out": answer.value.clients_left_out,
            "complete": answer.value.complete,
            **told_with(answer),
        }
        return Response(TopologySerializer(body).data)
