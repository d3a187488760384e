"""REST resources of offsets: where a group is, moving it, whether it moved, undoing that."""

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import AnsweredSerializer, BodySerializer, OutcomeSerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.areas.messages.forms import TOPIC_CHARS_MAX
from console.areas.offsets.forms import GROUP_CHARS_MAX
from console.areas.offsets.models import OffsetReset
from console.areas.offsets.resets import (
    RESET_ACTION,
    UNDO_ACTION,
    carry_out,
    checked,
    reset_of,
    undo_wish,
)
from console.gateway.groups.listing import group_settings
from console.gateway.offsets.plan import Plan, ResetMethod, ResetRequest, ResetTarget, etag_of
from console.gateway.offsets.positions import QUEUES_MAX, client_offsets, positions
from console.gateway.offsets.reset import OFFSET_MAX, plan

TIMESTAMP_MAX = 2**53
BROKER_CHARS_MAX = 255
QUEUE_ID_MAX = 2**31 - 1
RESETS_SHOWN = 50


class PlaceSerializer(serializers.Serializer[Any]):
    """A group in one queue, which holds the offsets from begin to before end."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    begin = serializers.IntegerField()
    end = serializers.IntegerField()
    offset = serializers.IntegerField(allow_null=True, help_text="Null: it never committed one.")
    lag = serializers.IntegerField(allow_null=True)
    client = serializers.CharField(allow_null=True)
    client_offset = serializers.IntegerField(
        allow_null=True, help_text="What the consumer that holds the queue says itself."
    )


class PlacesSerializer(AnsweredSerializer):
    group = serializers.CharField()
    topic = serializers.CharField()
    items = PlaceSerializer(many=True)


class QueueSerializer(BodySerializer):
    broker = serializers.CharField(max_length=BROKER_CHARS_MAX)
    queue_id = serializers.IntegerField(min_value=0, max_value=QUEUE_ID_MAX)


class QueueOffsetSerializer(QueueSerializer):
    offset = serializers.IntegerField(min_value=0, max_value=OFFSET_MAX)


class WishSerializer(BodySerializer):
    """Where a group is to go. An offset outside of what is stored is limited to it."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    to = serializers.ChoiceField(choices=[each.value for each in ResetTarget])
    time_ms = serializers.IntegerField(
        required=False, min_value=0, max_value=TIMESTAMP_MAX, help_text="Of `time`."
    )
    offset = serializers.IntegerField(
        required=False, min_value=0, max_value=OFFSET_MAX, help_text="Of `exact`."
    )
    by = serializers.IntegerField(
        required=False,
        min_value=-OFFSET_MAX,
        max_value=OFFSET_MAX,
        help_text="Of `shift`: messages on, or back when negative.",
    )
    group = serializers.CharField(
        required=False, max_length=GROUP_CHARS_MAX, help_text="Of `copy`: whose offsets."
    )
    queues = serializers.ListField(
        child=QueueSerializer(),
        required=False,
        max_length=QUEUES_MAX,
        help_text="Only these; all if absent.",
    )
    offsets = serializers.ListField(
        child=QueueOffsetSerializer(),
        required=False,
        max_length=QUEUES_MAX,
        help_text="Of `each`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["to"] == ResetTarget.EACH and not attrs.get("offsets"):
            raise ValidationError({"offsets": [_("`each` needs at least one queue.")]})
        return attrs

    @property
    def wish(self) -> ResetRequest:
        given = self.validated_data
        return ResetRequest(
            topic=given["topic"],
            goal=ResetTarget(given["to"]),
            time_ms=given.get("time_ms"),
            offset=given.get("offset"),
            by=given.get("by"),
            group=given.get("group", ""),
            queues=tuple((e["broker"], e["queue_id"]) for e in given.get("queues", ())),
            each=tuple(
                ((e["broker"], e["queue_id"]), e["offset"]) for e in given.get("offsets", ())
            ),
        )


class MoveSerializer(serializers.Serializer[Any]):
    """One queue of a plan; `new` equals `old` where nothing changes."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    old = serializers.IntegerField(allow_null=True)
    new = serializers.IntegerField(allow_null=True)
    skipped = serializers.IntegerField(allow_null=True)
    again = serializers.IntegerField(allow_null=True, help_text="Would be consumed once more.")
    limited = serializers.BooleanField(help_text="The wish lay outside of what is stored.")


class PlanSerializer(serializers.Serializer[Any]):
    """What a wish comes to."""

    dry_run = serializers.BooleanField()
    group = serializers.CharField()
    topic = serializers.CharField()
    online = serializers.ListField(child=serializers.CharField(), help_text="Client ids.")
    ways = serializers.DictField(
        child=serializers.ChoiceField(choices=[each.value for each in ResetMethod]),
        help_text="How each broker brings the group there.",
    )
    skipped = serializers.IntegerField(allow_null=True)
    again = serializers.IntegerField(allow_null=True)
    moves = MoveSerializer(many=True)
    reset = serializers.IntegerField(allow_null=True, help_text="Its number; null in a dry run.")
    outcomes = OutcomeSerializer(many=True)


class CheckSerializer(serializers.Serializer[Any]):
    """One queue after a reset."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    old = serializers.IntegerField(allow_null=True)
    new = serializers.IntegerField()
    committed = serializers.IntegerField(allow_null=True)
    client = serializers.CharField(allow_null=True)
    client_offset = serializers.IntegerField(allow_null=True)
    moved = serializers.BooleanField()


class ResetSerializer(serializers.Serializer[Any]):
    """One reset of the history."""

    id = serializers.IntegerField()
    topic = serializers.CharField()
    to = serializers.ChoiceField(choices=[each.value for each in ResetTarget])
    online = serializers.BooleanField()
    problems = serializers.ListField(
        child=serializers.CharField(), help_text="Brokers that did not do it, and why."
    )
    undoes = serializers.IntegerField(allow_null=True)
    may_undo = serializers.BooleanField()
    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()


class ResetsSerializer(serializers.Serializer[Any]):
    items = ResetSerializer(many=True)


class ResetCheckSerializer(ResetSerializer, AnsweredSerializer):
    moved = serializers.BooleanField(help_text="Whether the group was seen there in every queue.")
    queues = CheckSerializer(many=True)


class OffsetList(ClusterResource):
    actions = {"post": RESET_ACTION}

    @extend_schema(
        parameters=[OpenApiParameter("topic", OpenApiTypes.STR, required=True)],
        responses=PlacesSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """Where the group is in each queue of a topic. The ETag is for the `If-Match` of a POST."""
        topic = request.query_params.get("topic", "")
        if not topic or len(topic) > TOPIC_CHARS_MAX:
            raise ValidationError({"topic": [_("Name a topic.")]})
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        answer = self.cluster.ask(positions, group, topic)
        own = self.cluster.ask(client_offsets, group, topic).value
        items = []
        for each in answer.value:
            client, client_offset = own.get(each.key, (None, None))
            items.append(
                {
                    "broker": each.broker.name,
                    "queue_id": each.queue_id,
                    "begin": each.begin,
                    "end": each.end,
                    "offset": each.offset,
                    "lag": each.lag,
                    "client": client,
                    "client_offset": client_offset,
                }
            )
        body = {"group": group, "topic": topic, "items": items, **told_with(answer)}
        return Response(body, headers={"ETag": f'"{etag_of(answer.value)}"'})

    @extend_schema(
        parameters=[
            IF_MATCH,
            OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Show it, change nothing."),
        ],
        request=WishSerializer,
        responses={200: PlanSerializer, 201: PlanSerializer, 207: PlanSerializer},
        examples=[
            OpenApiExample(
                "An hour back",
                value={"topic": "orders", "to": "time", "time_ms": 1_800_000_000_000},
                request_only=True,
            ),
            OpenApiExample(
                "Skip ten messages of one queue",
                value={
                    "topic": "orders",
                    "to": "shift",
                    "by": 10,
                    "queues": [{"broker": "broker-a", "queue_id": 0}],
                },
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Move the group, online or not: 201, 207 when a broker failed, 412 for another state."""
        asked = WishSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        self.cluster.ask(group_settings, group)
        if _is_dry_run(request):
            planned = self.cluster.ask(plan, group, asked.wish).value
            return Response(plan_body(planned, dry_run=True), headers={"ETag": f'"{planned.etag}"'})
        row, planned, outcomes = carry_out(
            request, self.cluster, group, asked.wish, expected_etag=expected_etag(request)
        )
        body = {
            **plan_body(planned, dry_run=False),
            "reset": row.pk,
            "outcomes": [asdict(each) for each in outcomes],
        }
        whole = not row.errors
        names = {"cluster": cluster, "group": group, "number": row.pk}
        return Response(
            body,
            status.HTTP_201_CREATED if whole else status.HTTP_207_MULTI_STATUS,
            headers={"Location": reverse("api-offset-reset", kwargs=names)},
        )


class ResetList(ClusterResource):
    @extend_schema(responses=ResetsSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """The newest resets of the group."""
        rows = OffsetReset.objects.filter(cluster=self.cluster.name, group=group)
        found = rows.select_related("by")[:RESETS_SHOWN]
        return Response(ResetsSerializer({"items": [reset_body(each) for each in found]}).data)


class ResetOne(ClusterResource):
    @extend_schema(responses=ResetCheckSerializer)
    def get(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """One reset, and whether the group went where it was to go."""
        row = reset_of(self.cluster.name, group, number)
        answer = checked(self.cluster, row)
        return Response(
            {
                **ResetSerializer(reset_body(row)).data,
                "moved": all(each.moved for each in answer.value),
                "queues": [asdict(each) for each in answer.value],
                **told_with(answer),
            }
        )


class ResetUndo(ClusterResource):
    actions = {"post": UNDO_ACTION}

    @extend_schema(request=None, responses={201: PlanSerializer, 207: PlanSerializer})
    def post(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """Back to the offsets before this reset; 409 when it was undone already."""
        row = reset_of(self.cluster.name, group, number)
        undone, planned, outcomes = carry_out(
            request, self.cluster, group, undo_wish(row), undoes=row
        )
        body = {
            **plan_body(planned, dry_run=False),
            "reset": undone.pk,
            "outcomes": [asdict(each) for each in outcomes],
        }
        whole = not undone.errors
        return Response(body, status.HTTP_201_CREATED if whole else status.HTTP_207_MULTI_STATUS)


def plan_body(planned: Plan, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "group": planned.group,
        "topic": planned.topic,
        "online": list(planned.online),
        "ways": {broker.name: way.value for broker, way in planned.methods},
        "skipped": planned.skipped,
        "again": planned.again,
        "moves": [
            {
                "broker": each.position.broker.name,
                "queue_id": each.position.queue_id,
                "old": each.position.offset,
                "new": each.position.offset if each.new is None else each.new,
                "skipped": each.skipped,
                "again": each.again,
                "limited": each.is_limited,
            }
            for each in planned.moves
        ],
        "reset": None,
        "outcomes": [],
    }


def reset_body(row: OffsetReset) -> dict[str, Any]:
    return {
        "id": row.pk,
        "topic": row.topic,
        "to": row.goal,
        "online": row.online,
        "problems": row.errors,
        "undoes": row.undoes_id,
        "may_undo": row.may_undo,
        "by": row.by.get_username() if row.by else None,
        "at": row.at,
    }


def _is_dry_run(request: Request) -> bool:
    """Anything but yes and no is a mistake that must not move something."""
    text = request.query_params.get("dry_run")
    if text in {None, "", "false", "0"}:
        return False
    if text in {"true", "1"}:
        return True
    raise ValidationError({"dry_run": [_("Expected true or false.")]})
