"""REST resource of one message's journey."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import AnsweredSerializer
from console.api.views import ClusterResource
from console.gateway.traces import NoTrace, journey
from console.messages.forms import TOPIC_CHARS_MAX
from trace.timeline import AttemptState, EventKind, Outcome


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


class JourneySerializer(serializers.Serializer[Any]):
    """`missing` says why there is no trace; it is null when there is one."""

    msg_id = serializers.CharField()
    missing = serializers.ChoiceField(choices=[each.value for each in NoTrace], allow_null=True)
    broken_count = serializers.IntegerField()
    is_cut = serializers.BooleanField(help_text="A broker had more trace messages.")
    timeline = TimelineSerializer(allow_null=True)


class JourneyAnswerSerializer(JourneySerializer, AnsweredSerializer):
    """A journey, and when it was asked for."""


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
        """The journey of one message by its unique key; `missing` when it was not traced."""
        topic = request.query_params.get("topic", "")[:TOPIC_CHARS_MAX]
        return self.answered(self.cluster.ask(journey, msg_id, topic), JourneyAnswerSerializer)
