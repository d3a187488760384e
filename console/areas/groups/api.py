"""REST resources of the area `groups`."""

from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import read_flag
from console.api.paging import cut, list_parameters
from console.api.views import ClusterResource, told_with
from console.areas.groups import listing, serializers
from console.areas.groups.resource import GROUP
from console.frame.pages import only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import merge_failures
from console.gateway.changes import etag_of
from console.gateway.groups.changes import (
    FIELDS,
)
from console.gateway.groups.listing import group_rows, group_settings
from console.gateway.groups.members import group_clients, queue_owners, running_info
from console.gateway.groups.progress import group_offsets, with_owners
from console.resources import label_filter
from console.resources.api import ResourceList, ResourceOne
from console.resources.label_filter import LABEL
from console.resources.labels import labels_of, with_labels
from console.resources.models import Kind

SHOW = OpenApiParameter(
    "show",
    OpenApiTypes.STR,
    enum=list(listing.FILTERS),
    description="All groups except system groups if absent.",
)
STACK = OpenApiParameter("stack", OpenApiTypes.BOOL, description="Include a thread dump.")


class GroupList(ResourceList):
    resource = GROUP
    access_names = Scope.SOME

    @extend_schema(
        parameters=list_parameters(listing.COLUMNS, SHOW, LABEL),
        responses=serializers.GroupPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Groups of the cluster with lag, consume rate, clients and dead letters.

        Brokers without a bulk request are asked about the groups of the page. Sorting or filtering
        by a metric then covers the first 300 groups; `left_out` counts the remaining groups.
        """
        params = request.query_params
        show = params.get("show", "")
        if show and show not in listing.FILTERS:
            known = ", ".join(listing.FILTERS)
            raise ValidationError({"show": [_("Expected one of: %(known)s") % {"known": known}]})
        answer = only_readable(request, "groups", self.cluster, self.cluster.ask(group_rows))
        query = TableQuery.read(params, listing.COLUMNS, default="name")
        terms = label_filter.read(params.get("label", ""))
        rows = label_filter.matching(query, cluster, Kind.GROUP, answer.value, terms)
        numbers, lines = listing.numbered(self.cluster, rows, query.ordered_by, show)
        part = cut(params, listing.COLUMNS, listing.passing(lines, show))
        numbers.fill(part.rows)
        items = with_labels(cluster, Kind.GROUP, serializers.lines_body(part.rows))
        return Response(
            {
                "items": items,
                "total": part.total,
                "left_out": numbers.left_out,
                "next_cursor": part.next_cursor,
                **told_with(numbers.as_answer(answer.failures)),
            }
        )


class GroupOne(ResourceOne):
    resource = GROUP
    delete_description = (
        "Delete the group, its offsets and its retry topic; dead letters only with "
        "`dead_letters`.\n\n409 for a protected group, and for a group with connected clients "
        "unless `confirm` repeats the group name."
    )

    @extend_schema(responses=serializers.GroupSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """A group: offsets by queue, connected clients, settings on every broker."""
        settings = self.cluster.ask(group_settings, group)
        offsets = self.cluster.ask(group_offsets, group)
        clients = self.cluster.ask(group_clients, group)
        held = with_owners(offsets.value.queues, self.cluster.ask(queue_owners, group).value)
        progress = offsets.value.progress
        failures = merge_failures(settings.failures, offsets.failures, clients.failures)
        configs = [
            {
                "broker": ref.name,
                "addr": ref.addr,
                **{field: getattr(config, field) for field in FIELDS},
            }
            for ref, config in settings.value
        ]
        body = {
            "name": group,
            "labels": labels_of(cluster, Kind.GROUP, group),
            "progress": serializers.ProgressSerializer(progress).data if progress else None,
            "configs": configs,
            "queues": serializers.GroupQueueSerializer(held, many=True).data,
            "clients": serializers.ClientSerializer(clients.value.clients, many=True).data,
            "asked_at_ms": offsets.asked_at_ms,
            "failures": [asdict(failure) for failure in failures],
        }
        return Response(body, headers={"ETag": f'"{etag_of(settings.value)}"'})


class ClientList(ClusterResource):
    @extend_schema(responses=serializers.ClientListSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """Connected clients of the group and their subscriptions."""
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        return self.answered(
            self.cluster.ask(group_clients, group), serializers.ClientListSerializer
        )


class ClientOne(ClusterResource):
    @extend_schema(parameters=[STACK], responses=serializers.RunningClientSerializer)
    def get(self, request: Request, cluster: str, group: str, client: str) -> Response:
        """Running info of a consumer, requested through the consumer's broker."""
        with_stack = read_flag(request, "stack")
        answer = self.cluster.ask(running_info, group, client, with_stack)
        member, info = answer.value
        queues: list[dict[str, Any]] = [
            {
                "topic": queue.topic,
                "broker": queue.broker_name,
                "queue_id": queue.queue_id,
                "commit_offset": held.commit_offset,
                "cached_messages": held.cached_msg_count,
                "dropped": held.droped,
                "last_pull_ms": held.last_pull_timestamp or None,
                "last_consume_ms": held.last_consume_timestamp or None,
            }
            for queue, held in sorted(info.mq_table.items())
        ]
        return Response(
            {
                "client": serializers.ClientSerializer(member).data,
                "properties": info.properties,
                "queues": queues,
                "stack": info.jstack if with_stack else None,
                **told_with(answer),
            }
        )
