"""REST resources of trace analytics."""

from __future__ import annotations

from django.urls import path

from console.analytics import api

urlpatterns = [
    path("analytics", api.Summary.as_view(), name="api-analytics"),
    path("analytics/series", api.Series.as_view(), name="api-analytics-series"),
    path("analytics/topics", api.Topics.as_view(), name="api-analytics-topics"),
    path("analytics/groups", api.Groups.as_view(), name="api-analytics-groups"),
    path("analytics/slow", api.Slow.as_view(), name="api-analytics-slow"),
]
