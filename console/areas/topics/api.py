"""REST resources of the area `topics`."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import cut, list_parameters
from console.api.views import told_with
from console.areas.topics import listing
from console.areas.topics.resource import TOPIC
from console.areas.topics.serializers import (
    TopicNumbersSerializer,
    TopicPageSerializer,
    TopicPatchSerializer,
    TopicQueueSerializer,
    TopicRowSerializer,
    TopicSerializer,
    lines_body,
)
from console.frame.pages import only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import Answer
from console.gateway.changes import etag_of
from console.gateway.topics.listing import TopicDetail, TopicRow, topic_detail, topic_rows
from console.gateway.topics.metrics import TopicMetrics, topic_metrics
from console.resources import bulk, label_filter
from console.resources.api import BulkUpdate, ResourceList, ResourceOne
from console.resources.label_filter import LABEL
from console.resources.labels import labels_of, with_labels
from console.resources.models import Kind

TYPE = OpenApiParameter("type", OpenApiTypes.STR, enum=list(listing.KINDS))


class TopicList(ResourceList):
    resource = TOPIC
    access_names = Scope.SOME

    @extend_schema(
        parameters=list_parameters(listing.COLUMNS, TYPE, LABEL), responses=TopicPageSerializer
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Topics of the cluster with their metrics.

        Brokers without a bulk request are asked about the topics of the page. Sorting by a metric
        then covers the first 300 topics; `left_out` counts the remaining topics.
        """
        params = request.query_params
        kind = params.get("type", "")
        if kind and kind not in listing.KINDS:
            known = ", ".join(listing.KINDS)
            raise ValidationError({"type": [_("Expected one of: %(known)s") % {"known": known}]})
        answer = only_readable(request, "topics", self.cluster, self.cluster.ask(topic_rows))
        query = TableQuery.read(params, listing.COLUMNS, default="name")
        terms = label_filter.read(params.get("label", ""))
        rows = listing.of_kind(answer.value, kind)
        found = label_filter.matching(query, cluster, Kind.TOPIC, rows, terms)
        numbers, lines = listing.numbered(self.cluster, found, query.ordered_by)
        part = cut(params, listing.COLUMNS, lines)
        numbers.fill(part.rows)
        items = with_labels(cluster, Kind.TOPIC, lines_body(part.rows))
        body = {"items": items, "total": part.total, "next_cursor": part.next_cursor}
        told = told_with(numbers.as_answer(answer.failures))
        return Response({**body, "left_out": numbers.left_out, **told})


class TopicOne(ResourceOne):
    resource = TOPIC
    delete_description = (
        "Delete the topic, its messages on every broker and its route.\n\n409 for a protected "
        "topic, and for a topic with connected consumers unless `confirm` repeats the topic name."
    )

    @extend_schema(responses=TopicSerializer)
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        """A topic with all queues and its configuration on every broker."""
        answer = self.cluster.ask(topic_detail, topic)
        numbers = self.cluster.ask(topic_metrics, topic)
        etag = etag_of(answer.value.configs)
        labels = labels_of(cluster, Kind.TOPIC, topic)
        body = {**topic_body(answer, numbers), "labels": labels}
        return Response(body, headers={"ETag": f'"{etag}"'})


class TopicsPatchSerializer(bulk.NamesSerializer, TopicPatchSerializer):
    """The same settings for several topics."""


class TopicBulkUpdate(BulkUpdate):
    resource = TOPIC
    names_serializer = TopicsPatchSerializer


def topic_body(answer: Answer[TopicDetail], numbers: Answer[TopicMetrics]) -> dict[str, Any]:
    detail = answer.value
    row: TopicRow = detail.row
    configs = [
        {
            "broker": ref.name,
            "addr": ref.addr,
            "write_queues": config.write_queue_nums,
            "read_queues": config.read_queue_nums,
            "perm": config.perm,
            "order": config.order,
            "attributes": config.attributes,
        }
        for ref, config in detail.configs
    ]
    return {
        **TopicRowSerializer(row).data,
        "numbers": TopicNumbersSerializer(numbers.value).data,
        "configs": configs,
        "queues": TopicQueueSerializer(detail.queues, many=True).data,
        **told_with(answer),
    }
