"""The analytics pages with a shared scope: overview, topology, slowest messages."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.frame.pages import ClusterPage, Crumb
from console.gateway import now_ms
from console.services.analytics import queries
from console.services.analytics.aggregates import Scope
from console.services.analytics.duck import LakeReader
from console.services.analytics.graph import graph_of
from console.services.analytics.heatmap import drawn_points, heat_map
from console.services.analytics.labels import KIND_TITLES
from console.services.analytics.lake_session import lake_reader, read_scope
from console.services.analytics.ranges import SPANS
from console.services.analytics.trace_jobs import INGEST
from console.services.analytics.unconsumed import never_consumed
from console.services.jobs import kinds, spark
from console.services.jobs.models import Job
from console.services.jobs.states import ACTIVE
from console.web.dependencies import redis_problem

#: Number of slowest messages on the overview.
SLOWEST_ON_OVERVIEW = 10
#: Measures with percentiles on the overview.
MEASURES_SHOWN = ("latency", "send_cost")
#: Age of the last trace data from which the page warns, ms.
OLD_MS = 3_600_000


class AnalyticsPage(ClusterPage):
    """Base of the pages: scope, freshness of the lake, results of the page."""

    name = "overview"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        range_error = ""
        try:
            scope = read_scope(request.GET, now_ms())
        except ValueError as error:
            range_error, scope = str(error), read_scope({}, now_ms())
        with lake_reader(self.cluster.name) as reader:
            results = self.results(reader, scope) if reader.snapshot.run else {}
            snapshot = reader.snapshot if reader.snapshot.run else None
            freshness = self._freshness(reader, scope)
        return self.show(
            title=self.heading(),
            crumbs=self.crumbs(),
            status=400 if range_error else 200,
            range_error=range_error,
            scope=scope,
            snapshot=snapshot,
            ingest=kinds.find(INGEST),
            active_job=self._active_job(),
            **_scope_context(scope),
            **self._tabs(scope),
            **freshness,
            **({} if snapshot else self._requirements()),
            **results,
        )

    def heading(self) -> str:
        return _("Analytics")

    def crumbs(self) -> list[Crumb]:
        return [Crumb(self.heading())]

    def results(self, reader: LakeReader, scope: Scope) -> dict[str, Any]:
        """Run the queries of the page; returns template variables."""
        raise NotImplementedError

    def _freshness(self, reader: LakeReader, scope: Scope) -> dict[str, Any]:
        data_ms = reader.snapshot.watermark_ms or reader.snapshot.committed_ms
        is_behind = (
            bool(reader.snapshot.run) and data_ms < min(scope.range.end_ms, now_ms()) - OLD_MS
        )
        return {"broken_files": reader.broken, "data_until_ms": data_ms, "is_behind": is_behind}

    def _tabs(self, scope: Scope) -> dict[str, Any]:
        query = urlencode(_query_of(scope))
        tabs = [
            ("overview", _("Overview")),
            ("graph", _("Message flow")),
            ("slow", _("Slowest messages")),
        ]
        where = {"cluster": self.cluster.name}
        return {
            "tabs": [
                (f"{reverse(f'analytics:{name}', kwargs=where)}?{query}", title, name == self.name)
                for name, title in tabs
            ]
        }

    def _requirements(self) -> dict[str, Any]:
        """Availability of Redis and Spark, shown before the first trace job."""
        return {"redis_problem": redis_problem(), "spark": spark.last_known()}

    def _active_job(self) -> Job | None:
        return Job.objects.filter(cluster=self.cluster.name, kind=INGEST, state__in=ACTIVE).first()


class OverviewPage(AnalyticsPage):
    """The overview; charts fetch points from the API, all other results are in the page."""

    template = "analytics/overview.html"

    def results(self, reader: LakeReader, scope: Scope) -> dict[str, Any]:
        whole = queries.overview(reader, scope, MEASURES_SHOWN)
        funnel = queries.funnel(reader, scope, whole.total)
        columns = drawn_points(scope.range.points)
        heat = heat_map(columns, queries.bands(reader, scope, "latency"))
        return {
            "total": whole.total,
            "topics": whole.topics,
            "groups": whole.groups,
            "kinds": whole.kinds,
            "heat": heat,
            "funnel": funnel,
            "funnel_most": max(step.count for step in funnel),
            "slowest": queries.slowest(reader, scope, limit=SLOWEST_ON_OVERVIEW),
        }


class GraphPage(AnalyticsPage):
    """The topology: message flow between producer groups, topics and consumer groups."""

    name = "graph"
    template = "analytics/graph.html"

    def heading(self) -> str:
        return _("Message flow")

    def crumbs(self) -> list[Crumb]:
        return _below(self.cluster.name, self.heading())

    def results(self, reader: LakeReader, scope: Scope) -> dict[str, Any]:
        edges = queries.edges(reader, scope)
        return {"edges": edges[: queries.ROWS_SHOWN], "graph": graph_of(edges)}


class SlowPage(AnalyticsPage):
    """Messages with the highest delivery latency, and never-consumed messages."""

    name = "slow"
    template = "analytics/slow.html"

    def heading(self) -> str:
        return _("Slowest messages")

    def crumbs(self) -> list[Crumb]:
        return _below(self.cluster.name, self.heading())

    def results(self, reader: LakeReader, scope: Scope) -> dict[str, Any]:
        return {
            "slowest": queries.slowest(reader, scope),
            "never": never_consumed(reader, scope, queries.SLOW_SHOWN),
        }


def _below(cluster: str, heading: str) -> list[Crumb]:
    start = reverse("analytics:overview", kwargs={"cluster": cluster})
    return [Crumb(_("Analytics"), start), Crumb(heading)]


def _scope_context(scope: Scope) -> dict[str, Any]:
    return {
        "spans": [(name, title) for name, (_length, title) in SPANS.items()],
        "begin_local": _local(scope.range.begin_ms),
        "end_local": _local(scope.range.end_ms),
        "kind_choices": list(KIND_TITLES.items()),
        "kind_title": KIND_TITLES.get(scope.kind or "", ""),
        "zone": timezone.get_current_timezone_name(),
        "scope_query": urlencode(_query_of(scope)),
        "range_query": urlencode(_range_of(scope)),
        "filters": _filters_of(scope),
        "filter_query": urlencode(_filters_of(scope)),
    }


def _local(ms: int) -> str:
    """The value of a `datetime-local` field, in the time zone of the user."""
    moment = datetime.fromtimestamp(ms / 1000, UTC).astimezone(timezone.get_current_timezone())
    return moment.strftime("%Y-%m-%dT%H:%M")


def _query_of(scope: Scope) -> dict[str, str]:
    """Query parameters of the scope."""
    return _range_of(scope) | _filters_of(scope)


def _range_of(scope: Scope) -> dict[str, str]:
    shown = scope.range
    if shown.span:
        return {"range": shown.span}
    return {"begin_ms": str(shown.begin_ms), "end_ms": str(shown.end_ms)}


def _filters_of(scope: Scope) -> dict[str, str]:
    filters = {"topic": scope.topic, "group": scope.consumer_group, "kind": scope.kind}
    return {name: value for name, value in filters.items() if value}
