"""REST resources of the area `topics`."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import CONFIRM, DRY_RUN, dry_run_body, read_flag
from console.api.paging import cut, list_parameters
from console.api.serializers import OutcomesSerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.areas.topics import listing
from console.areas.topics.serializers import (
    TopicCreateSerializer,
    TopicImpactSerializer,
    TopicNumbersSerializer,
    TopicPageSerializer,
    TopicPatchSerializer,
    TopicQueueSerializer,
    TopicRowSerializer,
    TopicSerializer,
    lines_body,
)
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.tables import TableQuery
from console.gateway import Answer
from console.gateway.changes import check_unchanged, chosen_of, etag_of, states
from console.gateway.topics.changes import (
    create_topic,
    delete_topic,
    differences,
    topic_impact,
    update_topic,
)
from console.gateway.topics.listing import TopicDetail, TopicRow, topic_detail, topic_rows
from console.gateway.topics.metrics import TopicNumbers, topic_numbers
from console.resources import history
from console.resources.models import Kind
from console.resources.protection import check_confirmed, check_deletable, is_protected

TYPE = OpenApiParameter("type", OpenApiTypes.STR, enum=list(listing.KINDS))


class TopicList(ClusterResource):
    actions = {"post": "topic.create"}

    @extend_schema(parameters=list_parameters(listing.COLUMNS, TYPE), responses=TopicPageSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Topics of the cluster, with their numbers.

        Brokers that cannot tell of all topics at once are asked about those that are given. In the
        order of a number that is the first 300 topics; `left_out` counts the others.
        """
        params = request.query_params
        kind = params.get("type", "")
        if kind and kind not in listing.KINDS:
            known = ", ".join(listing.KINDS)
            raise ValidationError({"type": [_("Expected one of: %(known)s") % {"known": known}]})
        answer = self.cluster.ask(topic_rows)
        query = TableQuery.read(params, listing.COLUMNS, default="name")
        found = query.matching(listing.of_kind(answer.value, kind))
        numbers, lines = listing.numbered(self.cluster, found, query.ordered_by)
        part = cut(params, listing.COLUMNS, lines)
        numbers.fill(part.rows)
        items = lines_body(part.rows)
        body = {"items": items, "total": part.total, "next_cursor": part.next_cursor}
        told = told_with(numbers.told(answer.failures))
        return Response({**body, "left_out": numbers.left_out, **told})

    @extend_schema(
        request=TopicCreateSerializer,
        responses={201: OutcomesSerializer, 207: OutcomesSerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Create a topic; 409 when a broker already has it."""
        form = TopicCreateSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        name = form.validated_data["name"]
        with audited(request, "topic.create", cluster=cluster, target=name) as entry:
            outcomes = self.cluster.do(
                create_topic, name, form.settings(), form.validated_data.get("brokers")
            )
            entry.after = form.settings()
            entry.outcomes(outcomes)
        location = reverse("api-topic", kwargs={"cluster": cluster, "topic": name})
        return self.changed(name, outcomes, done=status.HTTP_201_CREATED, location=location)


class TopicOne(ClusterResource):
    actions = {"patch": "topic.update", "delete": "topic.delete"}

    @extend_schema(responses=TopicSerializer)
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        """One topic with its configuration on every broker and all its queues."""
        answer = self.cluster.ask(topic_detail, topic)
        numbers = self.cluster.ask(topic_numbers, topic)
        etag = etag_of(answer.value.configs)
        return Response(topic_body(answer, numbers), headers={"ETag": f'"{etag}"'})

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=TopicPatchSerializer,
        responses={200: OutcomesSerializer, 207: OutcomesSerializer},
    )
    def patch(self, request: Request, cluster: str, topic: str) -> Response:
        """Change some settings, on all brokers that have the topic or on the named ones.

        With `dry_run` nothing is changed, and the answer has the difference.
        """
        form = TopicPatchSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        detail = self.cluster.ask(topic_detail, topic).value
        check_unchanged(expected_etag(request), etag_of(detail.configs))
        held = chosen_of(detail.configs, form.validated_data.get("brokers"))
        lines = differences(held, form.settings())
        if read_flag(request, "dry_run"):
            return Response(dry_run_body(topic, lines))
        with audited(request, "topic.update", **self.act(topic)) as entry:
            outcomes = self.cluster.do(
                update_topic,
                topic,
                form.settings(),
                form.validated_data.get("brokers"),
                expected_etag(request),
            )
            entry.after = form.settings()
            entry.outcomes(outcomes)
        history.keep(request.user, cluster, Kind.TOPIC, topic, lines, outcomes)
        return self.changed(topic, outcomes)

    @extend_schema(
        parameters=[IF_MATCH, CONFIRM], responses={200: OutcomesSerializer, 207: OutcomesSerializer}
    )
    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str, topic: str) -> Response:
        """Delete the topic with its messages on every broker, and its route.

        409 when it is protected, and when clients of its groups are connected but `confirm` does
        not repeat its name.
        """
        with audited(request, "topic.delete", **self.act(topic)) as entry:
            check_deletable(cluster, Kind.TOPIC, topic)
            impact = self.cluster.ask(topic_impact, topic).value
            check_confirmed(topic, request.query_params.get("confirm"), impact.clients)
            outcomes = self.cluster.do(delete_topic, topic, expected_etag(request))
            entry.outcomes(outcomes)
        return self.changed(topic, outcomes)

    def act(self, topic: str) -> dict[str, Any]:
        """What the audit list keeps of the topic as it is now."""
        before = states(self.cluster.ask(topic_detail, topic).value.configs)
        return {"cluster": self.cluster.name, "target": topic, "before": before}


class TopicImpactNow(ClusterResource):
    @extend_schema(responses=TopicImpactSerializer)
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        """What a deletion would take with it."""
        answer = self.cluster.ask(topic_impact, topic)
        impact = answer.value
        return Response(
            {
                "numbers": TopicNumbersSerializer(impact.numbers).data,
                "brokers": impact.brokers,
                "queues": impact.queues,
                "online_groups": dict(impact.online_groups),
                "protected": is_protected(cluster, Kind.TOPIC, topic),
                **told_with(answer),
            }
        )


def topic_body(answer: Answer[TopicDetail], numbers: Answer[TopicNumbers]) -> dict[str, Any]:
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
