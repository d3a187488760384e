"""REST resource of the history; the charts of pages read the same."""

from math import isnan
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.gateway import now_ms
from console.services.analytics.ranges import SPAN_DEFAULT, SPANS
from console.services.history.blocks import Values
from console.services.history.metrics import (
    BY_NAME,
    INTERVAL_MS,
    METRICS,
    Metric,
    Scope,
    broker_name,
    names_of,
)
from console.services.history.places import place_of
from console.services.history.ranges import HistoryRange, read_history_range
from console.services.history.reading import Points, read_coverage, read_points
from console.services.history.serializers import HistorySerializer
from console.services.history.store import STORE_ERRORS

#: Maximum length of a topic, group or broker name, characters: RocketMQ's for topics and groups.
NAME_CHARS_MAX = 255
BROKER_ID_MAX = 2**31 - 1
SELECTORS: tuple[Scope, ...] = ("topic", "group", "broker")
PARAMETERS = [
    OpenApiParameter(
        "metric",
        enum=list(dict.fromkeys(metric.name for metric in METRICS)),
        required=True,
        description="; ".join(
            f"{scope}: {', '.join(names_of(scope))}" for scope in ("cluster", *SELECTORS)
        ),
    ),
    OpenApiParameter("topic", description="Of this topic; of the whole cluster if absent."),
    OpenApiParameter("group", description="Of this consumer group."),
    OpenApiParameter("broker", description="Of this broker."),
    OpenApiParameter("broker_id", OpenApiTypes.INT, description="0, the master, if absent."),
    OpenApiParameter("range", enum=list(SPANS), description=f"{SPAN_DEFAULT} if absent."),
    OpenApiParameter("begin_ms", OpenApiTypes.INT, description="Instead of `range`."),
    OpenApiParameter("end_ms", OpenApiTypes.INT, description="With `begin_ms`; now if absent."),
    OpenApiParameter(
        "step_ms",
        OpenApiTypes.INT,
        description="10000, 20000, 30000 or a multiple of 60000; at most 1500 points.",
    ),
]


class HistoryUnreadable(APIException):
    status_code = 503
    default_code = "history_unreadable"


class History(ClusterResource):
    @extend_schema(parameters=PARAMETERS, responses=HistorySerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """A metric of the cluster, a topic, a group or a broker over time; gaps are null."""
        metric, name = _series(request)
        place = place_of(settings.GANTRY_HOME, self.cluster.name)
        try:
            coverage = read_coverage(place, metric.scope, name)
            interval_ms = INTERVAL_MS if coverage is None else coverage.interval_ms
            over = _range(request, interval_ms)
            points = read_points(place, metric, name, over.begin_ms, over.step_ms, over.count)
        except STORE_ERRORS as error:
            raise HistoryUnreadable(_("The history cannot be read: %s") % error) from error
        return Response(body_of(metric, over, points))


def _range(request: Request, interval_ms: int) -> HistoryRange:
    """Return the range of the request. Raises ValidationError."""
    zone = timezone.get_current_timezone()
    try:
        return read_history_range(request.query_params, now_ms(), zone, interval_ms=interval_ms)
    except ValueError as error:
        raise ValidationError({"range": [str(error)]}) from error


def body_of(metric: Metric, over: HistoryRange, points: Points) -> dict[str, Any]:
    """Return the JSON of a metric's points."""
    columns = {name: points.values.get(name) for name in ("avg", "min", "max", "last")}
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "begin_ms": over.begin_ms,
        "end_ms": over.end_ms,
        "step_ms": over.step_ms,
        "count": over.count,
        "first_sample_ms": points.first_ms,
        "interval_ms": points.interval_ms,
        **{name: None if found is None else _json(found) for name, found in columns.items()},
    }


def _json(values: Values) -> list[float | None]:
    return [None if isnan(value) else value for value in values.tolist()]


def _series(request: Request) -> tuple[Metric, str]:
    """Return the metric and the name. Raises ValidationError."""
    params = request.query_params
    given = [scope for scope in SELECTORS if scope in params]
    if len(given) > 1:
        raise ValidationError({given[1]: [_("Only one of topic, group and broker is possible.")]})
    scope: Scope = given[0] if given else "cluster"
    metric = BY_NAME.get((scope, params.get("metric", "")))
    if metric is None:
        names = ", ".join(names_of(scope))
        raise ValidationError(
            {"metric": [_("The metric must be one of %(names)s.") % {"names": names}]}
        )
    if scope != "broker" and "broker_id" in params:
        raise ValidationError({"broker_id": [_("The parameter needs the parameter broker.")]})
    if not given:
        return metric, ""
    name = params[scope]
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise ValidationError({scope: [_("The name must have 1 to 255 printable characters.")]})
    return metric, broker_name(name, _broker_id(params)) if scope == "broker" else name


def _broker_id(params: Any) -> int:
    text = params.get("broker_id", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 10) or int(text) > BROKER_ID_MAX:
        raise ValidationError({"broker_id": [_("The id must be a number from 0.")]})
    return int(text)
