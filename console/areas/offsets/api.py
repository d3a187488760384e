"""REST resources of offsets: positions of a group, reset, check of a reset, undo."""

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

from console.api.flags import read_flag
from console.api.serializers import AnsweredSerializer, BodySerializer, OutcomeSerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.areas.messages.forms import TOPIC_CHARS_MAX
from console.areas.offsets.forms import GROUP_CHARS_MAX
from console.areas.offsets.models import OffsetReset
from console.areas.offsets.resets import (
    RESET_ACTION,
    UNDO_ACTION,
    check_reset,
    execute_reset,
    reset_of,
    undo_request,
)
from console.gateway.groups.listing import group_settings
from console.gateway.offsets.plan import Plan, ResetMethod, ResetRequest, ResetTarget, etag_of
from console.gateway.offsets.positions import QUEUES_MAX, client_offsets, positions
from console.gateway.offsets.reset import OFFSET_MAX, plan

TIMESTAMP_MAX = 2**53
BROKER_CHARS_MAX = 255
QUEUE_ID_MAX = 2**31 - 1
RESETS_SHOWN = 50

PLAN_ONLY = OpenApiParameter(
    "dry_run", OpenApiTypes.BOOL, description="Return the plan without a reset."
)


class QueuePositionSerializer(serializers.Serializer[Any]):
    """Position of a group in a queue with the offsets [begin, end)."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    begin = serializers.IntegerField()
    end = serializers.IntegerField()
    offset = serializers.IntegerField(
        allow_null=True, help_text="Committed offset; null before the first commit."
    )
    lag = serializers.IntegerField(allow_null=True)
    client = serializers.CharField(allow_null=True)
    client_offset = serializers.IntegerField(
        allow_null=True, help_text="Offset reported by the consumer of the queue."
    )


class QueuePositionsSerializer(AnsweredSerializer):
    group = serializers.CharField()
    topic = serializers.CharField()
    items = QueuePositionSerializer(many=True)


class QueueSerializer(BodySerializer):
    broker = serializers.CharField(max_length=BROKER_CHARS_MAX)
    queue_id = serializers.IntegerField(min_value=0, max_value=QUEUE_ID_MAX)


class QueueOffsetSerializer(QueueSerializer):
    offset = serializers.IntegerField(min_value=0, max_value=OFFSET_MAX)


class ResetRequestSerializer(BodySerializer):
    """Target of a reset. Offsets outside the stored range are limited to the range."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    to = serializers.ChoiceField(choices=[target.value for target in ResetTarget])
    time_ms = serializers.IntegerField(
        required=False, min_value=0, max_value=TIMESTAMP_MAX, help_text="Target time, for `time`."
    )
    offset = serializers.IntegerField(
        required=False, min_value=0, max_value=OFFSET_MAX, help_text="Target offset, for `exact`."
    )
    by = serializers.IntegerField(
        required=False,
        min_value=-OFFSET_MAX,
        max_value=OFFSET_MAX,
        help_text="For `shift`: number of messages; negative shifts backwards.",
    )
    group = serializers.CharField(
        required=False, max_length=GROUP_CHARS_MAX, help_text="For `copy`: source group."
    )
    queues = serializers.ListField(
        child=QueueSerializer(),
        required=False,
        max_length=QUEUES_MAX,
        help_text="Queues to reset; all queues if absent.",
    )
    offsets = serializers.ListField(
        child=QueueOffsetSerializer(),
        required=False,
        max_length=QUEUES_MAX,
        help_text="For `each`: target offset by queue.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["to"] == ResetTarget.EACH and not attrs.get("offsets"):
            raise ValidationError({"offsets": [_("`each` needs at least one queue.")]})
        return attrs

    @property
    def reset_request(self) -> ResetRequest:
        fields = self.validated_data
        return ResetRequest(
            topic=fields["topic"],
            goal=ResetTarget(fields["to"]),
            time_ms=fields.get("time_ms"),
            offset=fields.get("offset"),
            by=fields.get("by"),
            group=fields.get("group", ""),
            queues=tuple((e["broker"], e["queue_id"]) for e in fields.get("queues", ())),
            each=tuple(
                ((e["broker"], e["queue_id"]), e["offset"]) for e in fields.get("offsets", ())
            ),
        )


class MoveSerializer(serializers.Serializer[Any]):
    """A queue of a plan; `new` equals `old` without a change."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    old = serializers.IntegerField(allow_null=True)
    new = serializers.IntegerField(allow_null=True)
    skipped = serializers.IntegerField(allow_null=True)
    again = serializers.IntegerField(allow_null=True, help_text="Messages to be consumed again.")
    limited = serializers.BooleanField(help_text="The target was outside the stored range.")


class PlanSerializer(serializers.Serializer[Any]):
    """Plan of a reset."""

    dry_run = serializers.BooleanField()
    group = serializers.CharField()
    topic = serializers.CharField()
    online = serializers.ListField(child=serializers.CharField(), help_text="Client ids.")
    ways = serializers.DictField(
        child=serializers.ChoiceField(choices=[method.value for method in ResetMethod]),
        help_text="Reset method by broker.",
    )
    skipped = serializers.IntegerField(allow_null=True)
    again = serializers.IntegerField(allow_null=True)
    moves = MoveSerializer(many=True)
    reset = serializers.IntegerField(
        allow_null=True, help_text="Number of the reset; null in a dry run."
    )
    outcomes = OutcomeSerializer(many=True)


class CheckSerializer(serializers.Serializer[Any]):
    """A queue after a reset."""

    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    old = serializers.IntegerField(allow_null=True)
    new = serializers.IntegerField()
    committed = serializers.IntegerField(allow_null=True)
    client = serializers.CharField(allow_null=True)
    client_offset = serializers.IntegerField(allow_null=True)
    moved = serializers.BooleanField()


class ResetSerializer(serializers.Serializer[Any]):
    """An entry of the reset history."""

    id = serializers.IntegerField()
    topic = serializers.CharField()
    to = serializers.ChoiceField(choices=[target.value for target in ResetTarget])
    online = serializers.BooleanField()
    problems = serializers.ListField(
        child=serializers.CharField(), help_text="Failed brokers with reasons."
    )
    undoes = serializers.IntegerField(allow_null=True)
    may_undo = serializers.BooleanField()
    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()


class ResetsSerializer(serializers.Serializer[Any]):
    items = ResetSerializer(many=True)


class ResetCheckSerializer(ResetSerializer, AnsweredSerializer):
    moved = serializers.BooleanField(
        help_text="True once the group was observed at the target in every queue."
    )
    queues = CheckSerializer(many=True)


class OffsetList(ClusterResource):
    actions = {"post": RESET_ACTION}

    @extend_schema(
        parameters=[OpenApiParameter("topic", OpenApiTypes.STR, required=True)],
        responses=QueuePositionsSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """Position of the group in each queue of a topic. Send the ETag in `If-Match` of a POST."""
        topic = request.query_params.get("topic", "")
        if not topic or len(topic) > TOPIC_CHARS_MAX:
            raise ValidationError({"topic": [_("This parameter is required.")]})
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        answer = self.cluster.ask(positions, group, topic)
        own = self.cluster.ask(client_offsets, group, topic).value
        items = []
        for position in answer.value:
            client, client_offset = own.get(position.key, (None, None))
            items.append(
                {
                    "broker": position.broker.name,
                    "queue_id": position.queue_id,
                    "begin": position.begin,
                    "end": position.end,
                    "offset": position.offset,
                    "lag": position.lag,
                    "client": client,
                    "client_offset": client_offset,
                }
            )
        body = {"group": group, "topic": topic, "items": items, **told_with(answer)}
        return Response(body, headers={"ETag": f'"{etag_of(answer.value)}"'})

    @extend_schema(
        parameters=[
            IF_MATCH,
            PLAN_ONLY,
        ],
        request=ResetRequestSerializer,
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
        """Reset the offsets of an online or offline group.

        201 on success, 207 when a broker failed, 412 when the offsets do not match `If-Match`.
        """
        asked = ResetRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        self.cluster.ask(group_settings, group)
        if read_flag(request, "dry_run"):
            planned = self.cluster.ask(plan, group, asked.reset_request).value
            return Response(plan_body(planned, dry_run=True), headers={"ETag": f'"{planned.etag}"'})
        row, planned, outcomes = execute_reset(
            request, self.cluster, group, asked.reset_request, expected_etag=expected_etag(request)
        )
        body = {
            **plan_body(planned, dry_run=False),
            "reset": row.pk,
            "outcomes": [asdict(outcome) for outcome in outcomes],
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
        """The latest resets of the group."""
        rows = OffsetReset.objects.filter(cluster=self.cluster.name, group=group)
        rows = rows.select_related("by")[:RESETS_SHOWN]
        items = [reset_body(row) for row in rows if self.cluster.sees_topic(row.topic)]
        return Response(ResetsSerializer({"items": items}).data)


class ResetOne(ClusterResource):
    @extend_schema(responses=ResetCheckSerializer)
    def get(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """A reset with a check of the present offsets."""
        row = reset_of(self.cluster, group, number)
        answer = check_reset(self.cluster, row)
        return Response(
            {
                **ResetSerializer(reset_body(row)).data,
                "moved": all(check.moved for check in answer.value),
                "queues": [asdict(check) for check in answer.value],
                **told_with(answer),
            }
        )


class ResetUndo(ClusterResource):
    actions = {"post": UNDO_ACTION}

    @extend_schema(
        parameters=[PLAN_ONLY],
        request=None,
        responses={200: PlanSerializer, 201: PlanSerializer, 207: PlanSerializer},
    )
    def post(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """Restore the offsets from before this reset; 409 when the reset is already undone."""
        row = reset_of(self.cluster, group, number)
        if read_flag(request, "dry_run"):
            planned = self.cluster.ask(plan, group, undo_request(row)).value
            return Response(plan_body(planned, dry_run=True), headers={"ETag": f'"{planned.etag}"'})
        undone, planned, outcomes = execute_reset(
            request, self.cluster, group, undo_request(row), undoes=row
        )
        body = {
            **plan_body(planned, dry_run=False),
            "reset": undone.pk,
            "outcomes": [asdict(outcome) for outcome in outcomes],
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
                "broker": move.position.broker.name,
                "queue_id": move.position.queue_id,
                "old": move.position.offset,
                "new": move.position.offset if move.new is None else move.new,
                "skipped": move.skipped,
                "again": move.again,
                "limited": move.is_limited,
            }
            for move in planned.moves
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
