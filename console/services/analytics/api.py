"""REST resources of trace analytics; the pages run the same queries.

Every list can be fetched as a file: `export=csv`, `json` or `parquet`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import DIGITS_MAX
from console.api.views import ClusterResource
from console.gateway import now_ms
from console.services.analytics import queries, serializers, unconsumed
from console.services.analytics.aggregates import (
    KIND_NUMBERS,
    Aggregates,
    Percentiles,
    Point,
    Scope,
)
from console.services.analytics.duck import LakeReader
from console.services.analytics.export import FORMATS, download
from console.services.analytics.heatmap import heat_map
from console.services.analytics.lake_session import lake_reader, read_scope
from console.services.analytics.ranges import SPAN_DEFAULT, SPANS, TimeRange
from trace.lake import HOUR_MS
from trace.tables import MEASURES

PARAMETERS = [
    OpenApiParameter("range", enum=list(SPANS), description=f"{SPAN_DEFAULT} if absent."),
    OpenApiParameter("begin_ms", OpenApiTypes.INT, description="Instead of `range`."),
    OpenApiParameter("end_ms", OpenApiTypes.INT, description="With `begin_ms`; now if absent."),
    OpenApiParameter(
        "begin", OpenApiTypes.STR, description="`begin_ms` as local time: `2026-01-31T12:00`."
    ),
    OpenApiParameter("end", OpenApiTypes.STR, description="`end_ms` as local time."),
    OpenApiParameter("topic", OpenApiTypes.STR),
    OpenApiParameter("group", OpenApiTypes.STR, description="A consumer group."),
    OpenApiParameter("kind", enum=list(KIND_NUMBERS), description="Message type."),
]
EXPORT = OpenApiParameter(
    "export", enum=list(FORMATS), description="File format; JSON response if absent."
)
MEASURE = OpenApiParameter("measure", enum=list(MEASURES), description="latency if absent.")
CUTS = ("topic", "group", "kind", "hour")


class AnalyticsResource(ClusterResource):
    """Base of the resources: reads the scope of the request, and returns the scope with results."""

    def scope(self, request: Request) -> Scope:
        try:
            return read_scope(request.query_params, now_ms())
        except ValueError as error:
            raise ValidationError({"range": [str(error)]}) from error

    def scope_fields(self, scope: Scope, reader: LakeReader) -> dict[str, Any]:
        return {
            "begin_ms": scope.range.begin_ms,
            "end_ms": scope.range.end_ms,
            "step_ms": scope.range.step_ms,
            "committed_ms": reader.snapshot.committed_ms or None,
            "broken_files": reader.broken,
        }

    def itemized(
        self, request: Request, name: str, fields: dict[str, Any], items: Any
    ) -> Response | HttpResponse:
        """The response with scope fields and items, or the items as a file."""
        export = _choice(request, "export", ("", *FORMATS))
        if export:
            return download(f"{self.cluster.name}-{name}", export, items)
        return Response({**fields, "items": items})


class Summary(AnalyticsResource):
    @extend_schema(parameters=PARAMETERS, responses=serializers.SummarySerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Counts and latencies over the whole range, and record counts of the lake."""
        scope = self.scope(request)
        with lake_reader(self.cluster.name) as reader:
            total = queries.overview(reader, scope).total
            return Response(
                {
                    **self.scope_fields(scope, reader),
                    "total": serializers.AggregatesSerializer(total).data,
                    "records": reader.snapshot.records,
                    "broken_records": reader.snapshot.broken_records,
                    "lost_messages": reader.snapshot.lost_messages,
                }
            )


class Series(AnalyticsResource):
    @extend_schema(parameters=[*PARAMETERS, EXPORT], responses=serializers.SeriesSerializer)
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Counts and latencies over time, at most 122 points; incomplete after `committed_ms`."""
        scope = self.scope(request)
        with lake_reader(self.cluster.name) as reader:
            items = serializers.PointSerializer(queries.series(reader, scope), many=True).data
            return self.itemized(request, "series", self.scope_fields(scope, reader), items)


class NamedList(AnalyticsResource):
    """A table of the overview."""

    cut: ClassVar[str]

    @extend_schema(parameters=[*PARAMETERS, EXPORT], responses=serializers.NamedListSerializer)
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Counts and latencies by topic, consumer group or message type, busiest first."""
        scope = self.scope(request)
        with lake_reader(self.cluster.name) as reader:
            entries: list[Aggregates] = getattr(queries.overview(reader, scope), self.cut)
            items = serializers.NamedSerializer(entries, many=True).data
            return self.itemized(request, self.cut, self.scope_fields(scope, reader), items)


class Topics(NamedList):
    cut = "topics"


class Groups(NamedList):
    cut = "groups"


class Kinds(NamedList):
    cut = "kinds"


class Latency(AnalyticsResource):
    @extend_schema(
        parameters=[
            *PARAMETERS,
            MEASURE,
            OpenApiParameter("by", enum=list(CUTS), description="group if absent."),
            EXPORT,
        ],
        responses=serializers.LatencySerializer,
    )
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Percentiles and error rate by topic, group, message type or hour, and in total."""
        scope = self.scope(request)
        measure = _choice(request, "measure", MEASURES, "latency")
        by = _choice(request, "by", CUTS, "group")
        with lake_reader(self.cluster.name) as reader:
            whole = queries.overview(reader, scope)
            entries: Sequence[Aggregates | Point]
            if by == "hour":
                hourly = Scope(
                    _by_hours(scope.range), scope.topic, scope.consumer_group, scope.kind
                )
                entries = queries.series(reader, hourly)
            else:
                entries = getattr(whole, f"{by}s")
            items = [_latency_item(entry, measure) for entry in entries]
            total: Percentiles = getattr(whole.total, measure)
            fields = {
                **self.scope_fields(scope, reader),
                "by": by,
                "measure": measure,
                "total": serializers.PercentilesSerializer(total).data,
            }
            return self.itemized(request, "latency", fields, items)


class HeatMap(AnalyticsResource):
    @extend_schema(
        parameters=[*PARAMETERS, MEASURE, EXPORT], responses=serializers.HeatMapSerializer
    )
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Latency distribution over time: the non-empty cells of the heat map."""
        scope = self.scope(request)
        measure = _choice(request, "measure", MEASURES, "latency")
        with lake_reader(self.cluster.name) as reader:
            drawn = heat_map(scope.range.points, queries.bands(reader, scope, measure))
            items = [
                {"at_ms": at, "from_ms": band.from_ms, "to_ms": band.to_ms, "count": cell.count}
                for band in reversed(drawn.bands)
                for at, cell in zip(drawn.points, band.cells, strict=True)
                if cell.count
            ]
            fields = {**self.scope_fields(scope, reader), "measure": measure}
            return self.itemized(request, "heatmap", fields, items)


class Funnel(AnalyticsResource):
    @extend_schema(parameters=[*PARAMETERS, EXPORT], responses=serializers.FunnelSerializer)
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Steps from sent to succeeded; `unconfirmed` counts messages without a trace of
        consumption whose group has no known subscription or offset."""
        scope = self.scope(request)
        with lake_reader(self.cluster.name) as reader:
            steps = queries.funnel(reader, scope, queries.overview(reader, scope).total)
            items = serializers.StepSerializer(steps, many=True).data
            return self.itemized(request, "funnel", self.scope_fields(scope, reader), items)


class Edges(AnalyticsResource):
    @extend_schema(parameters=[*PARAMETERS, EXPORT], responses=serializers.EdgeListSerializer)
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """Edges of the topology, busiest first. Whole hours; the filter `kind` is ignored."""
        scope = self.scope(request)
        with lake_reader(self.cluster.name) as reader:
            items = serializers.EdgeSerializer(queries.edges(reader, scope), many=True).data
            return self.itemized(request, "edges", self.scope_fields(scope, reader), items)


class Slow(AnalyticsResource):
    @extend_schema(
        parameters=[
            *PARAMETERS,
            OpenApiParameter("reason", enum=["slow", "never_consumed"], description="slow."),
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 500; 50 if absent."),
            EXPORT,
        ],
        responses=serializers.SlowListSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response | HttpResponse:
        """The deliveries with the highest latency, or the never-consumed messages.

        A never-consumed message has no recorded attempt of the group, is not behind the committed
        offsets of the group, and passes the tag filter of the group. The field `reason` is
        `pending`, or `unknown` when the last trace job did not learn subscription and offsets.
        """
        scope = self.scope(request)
        reason = _choice(request, "reason", ("slow", "never_consumed"), "slow")
        limit = request.query_params.get("limit") or str(queries.SLOW_SHOWN)
        is_number = limit.isascii() and limit.isdigit() and len(limit) <= DIGITS_MAX
        if not (is_number and 0 < int(limit) <= queries.SLOW_MAX):
            raise ValidationError({"limit": [_("A number from 1 to 500.")]})
        with lake_reader(self.cluster.name) as reader:
            ask = queries.slowest if reason == "slow" else unconsumed.never_consumed
            deliveries = ask(reader, scope, limit=int(limit))
            fields = self.scope_fields(scope, reader)
        items = serializers.SlowDeliverySerializer(deliveries, many=True).data
        return self.itemized(request, "slow", fields, items)


def _by_hours(shown: TimeRange) -> TimeRange:
    begin = shown.begin_ms // HOUR_MS * HOUR_MS
    return TimeRange(begin, -(-shown.end_ms // HOUR_MS) * HOUR_MS, HOUR_MS)


def _latency_item(entry: Aggregates | Point, measure: str) -> dict[str, Any]:
    rate = entry.counts.consume_success if entry.counts else None
    key = {"at_ms": entry.at_ms} if isinstance(entry, Point) else {"name": entry.name}
    return {
        **key,
        **serializers.PercentilesSerializer(getattr(entry, measure)).data,
        "error_rate": None if rate is None else 1 - rate,
        "attempts": entry.counts.attempts if entry.counts else None,
    }


def _choice(request: Request, name: str, known: Sequence[str], default: str = "") -> str:
    chosen: str = request.query_params.get(name) or default
    if chosen not in known:
        names = ", ".join(filter(None, known))
        raise ValidationError({name: [_("One of %(names)s.") % {"names": names}]})
    return chosen
