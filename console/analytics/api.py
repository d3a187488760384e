"""REST resources of trace analytics; the page asks the same questions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.analytics import questions
from console.analytics.desk import asking, read_scope
from console.analytics.duck import LakeReader
from console.analytics.questions import Scope
from console.analytics.ranges import SPAN_DEFAULT, SPANS
from console.api.views import ClusterResource
from console.gateway import now_ms

PARAMETERS = [
    OpenApiParameter("range", enum=list(SPANS), description=f"{SPAN_DEFAULT} if absent."),
    OpenApiParameter("begin_ms", OpenApiTypes.INT, description="Instead of `range`."),
    OpenApiParameter("end_ms", OpenApiTypes.INT, description="With `begin_ms`; now if absent."),
    OpenApiParameter("topic", OpenApiTypes.STR),
    OpenApiParameter("group", OpenApiTypes.STR, description="A consumer group."),
]


class ScopedSerializer(serializers.Serializer[Any]):
    """What was looked at, and how fresh it is."""

    begin_ms = serializers.IntegerField()
    end_ms = serializers.IntegerField()
    step_ms = serializers.IntegerField()
    committed_ms = serializers.IntegerField(
        allow_null=True, help_text="When the last job brought data; null when none did yet."
    )
    broken_files = serializers.ListField(
        child=serializers.CharField(), help_text="Files that could not be read and are missing."
    )


class SpreadSerializer(serializers.Serializer[Any]):
    """Milliseconds, within 1 %; null where nothing was recorded."""

    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    max = serializers.FloatField(allow_null=True)


class FiguresSerializer(serializers.Serializer[Any]):
    """Counts, success rates (0 to 1) and latencies."""

    sends = serializers.IntegerField(source="counts.sends")
    send_failures = serializers.IntegerField(source="counts.send_failures")
    send_success = serializers.FloatField(source="counts.send_success", allow_null=True)
    bytes = serializers.IntegerField(source="counts.bytes")
    attempts = serializers.IntegerField(source="counts.attempts")
    successes = serializers.IntegerField(source="counts.successes")
    failures = serializers.IntegerField(source="counts.failures")
    retries = serializers.IntegerField(source="counts.retries")
    consume_success = serializers.FloatField(source="counts.consume_success", allow_null=True)
    latency = SpreadSerializer(help_text="From stored to the first time a listener had it.")
    send_cost = SpreadSerializer()


class PointSerializer(FiguresSerializer):
    at_ms = serializers.IntegerField(source="name")


class NamedSerializer(FiguresSerializer):
    name = serializers.CharField(allow_null=True, help_text="Null: nobody recorded which.")


class SlowDeliverySerializer(serializers.Serializer[Any]):
    msg_id = serializers.CharField()
    topic = serializers.CharField(allow_null=True)
    producer_group = serializers.CharField(allow_null=True)
    consumer_group = serializers.CharField(allow_null=True)
    stored_ms = serializers.IntegerField()
    start_ms = serializers.IntegerField(help_text="When the first listener had it.")
    latency_ms = serializers.IntegerField()
    duration_ms = serializers.IntegerField(allow_null=True)
    success = serializers.BooleanField(allow_null=True)


class SummarySerializer(ScopedSerializer):
    total = FiguresSerializer()
    records = serializers.IntegerField(help_text="Trace records in the lake, of all time.")
    broken_records = serializers.IntegerField()
    lost_messages = serializers.IntegerField()


class SeriesSerializer(ScopedSerializer):
    items = PointSerializer(many=True)


class NamedListSerializer(ScopedSerializer):
    items = NamedSerializer(many=True)


class SlowListSerializer(ScopedSerializer):
    items = SlowDeliverySerializer(many=True)


class AnalyticsResource(ClusterResource):
    """Reads the scope of the request and says with each answer what was looked at."""

    def scope(self, request: Request) -> Scope:
        try:
            return read_scope(request.query_params, now_ms())
        except ValueError as error:
            raise ValidationError({"range": [str(error)]}) from error

    def told(self, scope: Scope, reader: LakeReader) -> dict[str, Any]:
        return {
            "begin_ms": scope.range.begin_ms,
            "end_ms": scope.range.end_ms,
            "step_ms": scope.range.step_ms,
            "committed_ms": reader.snapshot.committed_ms or None,
            "broken_files": reader.broken,
        }


class Summary(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=SummarySerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Counts and latencies over the whole range, and what the lake holds."""
        scope = self.scope(request)
        with asking(self.cluster.name) as reader:
            total = questions.totals(reader, scope)
            return Response(
                {
                    **self.told(scope, reader),
                    "total": FiguresSerializer(total).data,
                    "records": reader.snapshot.records,
                    "broken_records": reader.snapshot.broken_records,
                    "lost_messages": reader.snapshot.lost_messages,
                }
            )


class Series(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=SeriesSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The same over time, at most 122 points. Points after `committed_ms` are still to come."""
        scope = self.scope(request)
        with asking(self.cluster.name) as reader:
            points = questions.series(reader, scope)
            items = PointSerializer(points, many=True).data
            return Response({**self.told(scope, reader), "items": items})


class Topics(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=NamedListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """By topic, the busiest first."""
        scope = self.scope(request)
        with asking(self.cluster.name) as reader:
            items = NamedSerializer(questions.topics(reader, scope), many=True).data
            return Response({**self.told(scope, reader), "items": items})


class Groups(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=NamedListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """By consumer group, the busiest first."""
        scope = self.scope(request)
        with asking(self.cluster.name) as reader:
            items = NamedSerializer(questions.groups(reader, scope), many=True).data
            return Response({**self.told(scope, reader), "items": items})


class Slow(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=SlowListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The deliveries that waited longest between store and listener."""
        scope = self.scope(request)
        with asking(self.cluster.name) as reader:
            items = SlowDeliverySerializer(questions.slowest(reader, scope), many=True).data
            return Response({**self.told(scope, reader), "items": items})
