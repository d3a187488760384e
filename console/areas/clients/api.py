"""REST resources of the area `clients`."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import cut, list_parameters
from console.api.serializers import AnsweredSerializer
from console.api.views import ClusterResource, told_with
from console.areas.clients import listing
from console.frame.tables import TableQuery
from console.gateway.clients import all_clients, producer_groups

ROLE = OpenApiParameter("role", OpenApiTypes.STR, enum=list(listing.ROLES))


class ConnectedSerializer(serializers.Serializer[Any]):
    """A connected client and its brokers."""

    client_id = serializers.CharField()
    addr = serializers.CharField()
    protocol = serializers.CharField(help_text="Protocol of the connection: remoting or grpc.")
    language = serializers.CharField()
    version = serializers.CharField()
    groups = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Consumer groups of the client with the subscribed topics.",
    )
    producer_groups = serializers.ListField(child=serializers.CharField())
    brokers = serializers.ListField(child=serializers.CharField())
    heartbeat_ms = serializers.IntegerField(
        allow_null=True, help_text="Null when the brokers do not report the heartbeat of consumers."
    )
    accounts = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "Accounts that sign the client's requests; empty if unknown: without access control, "
            "for clients of a white list, and from brokers of RocketMQ."
        ),
    )


class ConnectedPageSerializer(AnsweredSerializer):
    items = ConnectedSerializer(many=True)
    total = serializers.IntegerField()
    groups_left_out = serializers.IntegerField(
        help_text="Consumer groups without a request for members; see the page of each group."
    )
    next_cursor = serializers.CharField(allow_null=True)


class ProducerGroupSerializer(serializers.Serializer[Any]):
    """A producer group with connected producers."""

    name = serializers.CharField()
    clients = serializers.IntegerField()
    languages = serializers.ListField(child=serializers.CharField())
    versions = serializers.ListField(child=serializers.CharField())
    brokers = serializers.ListField(child=serializers.CharField())
    heartbeat_ms = serializers.IntegerField(
        allow_null=True, help_text="Latest heartbeat of a client of the group."
    )


class ProducerGroupPageSerializer(AnsweredSerializer):
    items = ProducerGroupSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class ConnectedList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(listing.COLUMNS, ROLE), responses=ConnectedPageSerializer
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Connected clients of every protocol. `q` searches client ids, addresses, groups and
        topics."""
        params = request.query_params
        role = params.get("role", "")
        if role and role not in listing.ROLES:
            known = ", ".join(listing.ROLES)
            raise ValidationError({"role": [_("Expected one of: %(known)s") % {"known": known}]})
        answer = self.cluster.ask(all_clients)
        search = TableQuery.read(params, listing.COLUMNS, default="name").search
        found = listing.passing(answer.value.clients, role, search)
        part = cut(params, listing.COLUMNS, found)
        return Response(
            {
                "items": ConnectedSerializer(part.rows, many=True).data,
                "total": part.total,
                "groups_left_out": answer.value.left_out,
                "next_cursor": part.next_cursor,
                **told_with(answer),
            }
        )


class ProducerGroupList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(listing.PRODUCER_COLUMNS),
        responses=ProducerGroupPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Producer groups with connected producers."""
        answer = self.cluster.ask(producer_groups)
        return self.listed(request, ProducerGroupSerializer, listing.PRODUCER_COLUMNS, answer)
