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
    """A connected client, over all brokers that see it."""

    client_id = serializers.CharField()
    addr = serializers.CharField()
    protocol = serializers.CharField(help_text="How it speaks with the broker: remoting or grpc.")
    language = serializers.CharField()
    version = serializers.CharField()
    groups = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="The consumer groups it is a member of, each with the topics subscribed to.",
    )
    producer_groups = serializers.ListField(child=serializers.CharField())
    brokers = serializers.ListField(child=serializers.CharField())
    heartbeat_ms = serializers.IntegerField(
        allow_null=True, help_text="Null for consumers of brokers that do not tell."
    )


class ConnectedPageSerializer(AnsweredSerializer):
    items = ConnectedSerializer(many=True)
    total = serializers.IntegerField()
    groups_left_out = serializers.IntegerField(
        help_text="Consumer groups whose members were not asked for, see the page of each group."
    )
    next_cursor = serializers.CharField(allow_null=True)


class ProducerGroupSerializer(serializers.Serializer[Any]):
    """A group that somebody produces for."""

    name = serializers.CharField()
    clients = serializers.IntegerField()
    languages = serializers.ListField(child=serializers.CharField())
    versions = serializers.ListField(child=serializers.CharField())
    brokers = serializers.ListField(child=serializers.CharField())
    heartbeat_ms = serializers.IntegerField(allow_null=True, help_text="The latest of its clients.")


class ProducerGroupPageSerializer(AnsweredSerializer):
    items = ProducerGroupSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class ConnectedList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(listing.COLUMNS, ROLE), responses=ConnectedPageSerializer
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Everybody who is connected, of every protocol. `q` looks in ids, addresses, groups and
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
        """The groups that somebody produces for; no name needs to be known."""
        answer = self.cluster.ask(producer_groups)
        return self.listed(request, ProducerGroupSerializer, listing.PRODUCER_COLUMNS, answer)
