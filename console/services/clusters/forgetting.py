"""Forgetting a broker that was decommissioned: page and REST resource."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage
from console.gateway import Cluster
from console.gateway.brokers.listing import forget_broker

ACTION = "broker.forget"
BROKER_ID = OpenApiParameter(
    "id", OpenApiTypes.INT, description="The broker id; 0, the master, if absent."
)


def forget(request: HttpRequest | Request, cluster: Cluster, broker: str, broker_id: int) -> None:
    """Remove a broker from the gateway and from the database, with an audit row."""
    target = f"{broker}:{broker_id}"
    with audited(request, ACTION, cluster=cluster.name, target=target) as entry:
        ref = cluster.do(forget_broker, broker, broker_id)
        cluster.forget_in_memory(ref)
        entry.after = {"addr": ref.addr}


@needs(Need.WRITE)
class ForgetPage(ClusterPage):
    """The button *Forget broker* of a broker that is down."""

    actions = {"post": ACTION}

    def post(self, request: HttpRequest, cluster: str, broker: str, number: int) -> HttpResponse:
        forget(request, self.cluster, broker, number)
        messages.success(request, _("The broker “%s” is forgotten.") % broker)
        return redirect("clusters:brokers", cluster)


def broker_id_of(request: Request) -> int:
    """Return the parameter `id`."""
    field = serializers.IntegerField(min_value=0, max_value=2**63 - 1)
    try:
        return int(field.run_validation(request.query_params.get("id", "0")))
    except serializers.ValidationError as wrong:
        raise serializers.ValidationError({"id": wrong.detail}) from None


class Forgetting(ClusterResource):
    """DELETE of a broker resource."""

    actions = {"delete": ACTION}

    @extend_schema(parameters=[BROKER_ID], responses={204: None})
    def delete(self, request: Request, cluster: str, broker: str) -> Response:
        """Forget a broker that was decommissioned; 409 while a name server lists the broker."""
        forget(request, self.cluster, broker, broker_id_of(request))
        return Response(status=204)
