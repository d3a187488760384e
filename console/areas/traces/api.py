"""REST resource of a message's journey."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import AnsweredSerializer
from console.api.views import ClusterResource, told_with
from console.areas.messages.forms import TOPIC_CHARS_MAX
from console.areas.traces.broker_events import broker_events_of
from console.areas.traces.drawing import BrokerEventKind
from console.gateway.traces.evidence import DeliveryState
from console.gateway.traces.journey import NoTrace, journey
from trace.attempts import AttemptState
from trace.timeline import EventKind, Outcome


class AttemptSerializer(serializers.Serializer[Any]):
    """One delivery to one group's listener. Times are corrected for clock skew."""

    retry_times = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(choices=[each.value for each in AttemptState])
    start_ms = serializers.IntegerField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    skew_ms = serializers.IntegerField()


class LatenciesSerializer(serializers.Serializer[Any]):
    send_to_consume_ms = serializers.IntegerField(allow_null=True)
    store_to_consume_ms = serializers.IntegerField(allow_null=True)
    end_to_end_ms = serializers.IntegerField(allow_null=True)


class GroupJourneySerializer(serializers.Serializer[Any]):
    group = serializers.CharField()
    outcome = serializers.ChoiceField(choices=[each.value for each in Outcome])
    latencies = LatenciesSerializer()
    attempts = AttemptSerializer(many=True)


class EventSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=[each.value for each in EventKind])
    at_ms = serializers.IntegerField()
    group = serializers.CharField()
    retry_times = serializers.IntegerField(allow_null=True)
    cost_ms = serializers.IntegerField(allow_null=True)
    skew_ms = serializers.IntegerField()


class TimelineSerializer(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField(choices=[each.value for each in Outcome])
    send_cost_ms = serializers.IntegerField(allow_null=True)
    duplicate_count = serializers.IntegerField()
    events = EventSerializer(many=True)
    groups = GroupJourneySerializer(many=True)


class StandingSerializer(serializers.Serializer[Any]):
    """Delivery state of a group, derived from filters, offsets and copies of the message."""

    group = serializers.CharField()
    standing = serializers.ChoiceField(choices=[each.value for each in DeliveryState])
    retry_times = serializers.IntegerField()
    next_ms = serializers.IntegerField(allow_null=True, help_text="Time of the next retry.")
    reason = serializers.CharField(help_text="Reason of an unknown state; filter of `filtered`.")


class SeenSerializer(serializers.Serializer[Any]):
    """An event from a broker or the ledger, without traces."""

    kind = serializers.ChoiceField(choices=[each.value for each in BrokerEventKind])
    at_ms = serializers.IntegerField()
    group = serializers.CharField()
    count = serializers.IntegerField(
        allow_null=True, help_text="Number of the retry or transaction check."
    )
    until_ms = serializers.IntegerField(allow_null=True, help_text="End of a wait.")
    by = serializers.CharField(help_text="User who resent the dead letter.")


class JourneySerializer(serializers.Serializer[Any]):
    """`reason` explains a missing trace and is null otherwise. `standings` and `seen` need no
    traces."""

    msg_id = serializers.CharField()
    reason = serializers.ChoiceField(choices=[each.value for each in NoTrace], allow_null=True)
    standings = StandingSerializer(many=True)
    seen = SeenSerializer(many=True)
    broken_count = serializers.IntegerField()
    is_cut = serializers.BooleanField(help_text="A broker had more trace messages.")
    timeline = TimelineSerializer(allow_null=True)


class JourneyAnswerSerializer(JourneySerializer, AnsweredSerializer):
    """A journey, and the time of the query."""


class JourneyOne(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter(
                "topic", OpenApiTypes.STR, description="The message's topic, for its store time."
            )
        ],
        responses=JourneyAnswerSerializer,
    )
    def get(self, request: Request, cluster: str, msg_id: str) -> Response:
        """The journey of a message by its unique key; `reason` for an untraced message."""
        topic = request.query_params.get("topic", "")[:TOPIC_CHARS_MAX]
        answer = self.cluster.ask(journey, msg_id, topic)
        found = answer.value
        seen = sorted(broker_events_of(self.cluster.name, found), key=lambda each: each.at_ms)
        body = {
            "msg_id": found.msg_id,
            "reason": found.reason,
            "standings": found.evidence.groups,
            "seen": seen,
            "broken_count": found.broken_count,
            "is_cut": found.is_cut,
            "timeline": found.timeline,
            **told_with(answer),
        }
        return Response(JourneyAnswerSerializer(body).data)
