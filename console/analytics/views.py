"""The analytics page: time range, figures, charts, tables, the slowest messages."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.analytics import questions
from console.analytics.desk import asking, read_scope
from console.analytics.questions import Scope
from console.analytics.ranges import SPANS
from console.gateway import now_ms
from console.jobs import kinds, spark
from console.jobs.models import Job
from console.jobs.states import ACTIVE
from console.jobs.trace_kinds import INGEST
from console.pages import ClusterPage
from console.services import redis_problem


class AnalyticsPage(ClusterPage):
    """Everything is in the page but the charts, whose points the page fetches from the API."""

    template = "analytics/overview.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        params, wrong = request.GET, ""
        try:
            scope = read_scope(params, now_ms())
        except ValueError as error:
            wrong, scope = str(error), read_scope({}, now_ms())
        return self.show(
            title=_("Analytics"),
            status=400 if wrong else 200,
            wrong_range=wrong,
            scope=scope,
            ingest=kinds.find(INGEST),
            spans=[(name, title) for name, (_length, title) in SPANS.items()],
            **self._figures(scope),
        )

    def _figures(self, scope: Scope) -> dict[str, Any]:
        with asking(self.cluster.name) as reader:
            snapshot = reader.snapshot
            if not snapshot.run:
                return {"snapshot": None, **self._what_to_do()}
            return {
                "snapshot": snapshot,
                "active_job": self._active_job(),
                "total": questions.totals(reader, scope),
                "topics": questions.topics(reader, scope),
                "groups": questions.groups(reader, scope),
                "slowest": questions.slowest(reader, scope),
                "series_query": urlencode(_query_of(scope)),
                "filter_query": urlencode(_filters_of(scope)),
                "broken_files": reader.broken,
            }

    def _what_to_do(self) -> dict[str, Any]:
        """For a lake that is not there yet."""
        return {
            "active_job": self._active_job(),
            "redis_problem": redis_problem(),
            "spark": spark.availability(),
        }

    def _active_job(self) -> Job | None:
        return Job.objects.filter(
            cluster=self.cluster.name, kind=INGEST, state__in=ACTIVE
        ).first()


def _query_of(scope: Scope) -> dict[str, str]:
    """The query string that asks for the scope again."""
    shown = scope.range
    range_query = (
        {"range": shown.span}
        if shown.span
        else {"begin_ms": str(shown.begin_ms), "end_ms": str(shown.end_ms)}
    )
    return range_query | _filters_of(scope)


def _filters_of(scope: Scope) -> dict[str, str]:
    filters = {"topic": scope.topic, "group": scope.consumer_group}
    return {name: value for name, value in filters.items() if value}
