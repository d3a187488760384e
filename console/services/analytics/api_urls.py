"""REST resources of trace analytics."""

from django.urls import path

from console.services.analytics import api

urlpatterns = [
    path("analytics", api.Summary.as_view(), name="api-analytics"),
    path("analytics/series", api.Series.as_view(), name="api-analytics-series"),
    path("analytics/topics", api.Topics.as_view(), name="api-analytics-topics"),
    path("analytics/groups", api.Groups.as_view(), name="api-analytics-groups"),
    path("analytics/kinds", api.Kinds.as_view(), name="api-analytics-kinds"),
    path("analytics/latency", api.Latency.as_view(), name="api-analytics-latency"),
    path("analytics/heatmap", api.HeatMap.as_view(), name="api-analytics-heatmap"),
    path("analytics/funnel", api.Funnel.as_view(), name="api-analytics-funnel"),
    path("analytics/edges", api.Edges.as_view(), name="api-analytics-edges"),
    path("analytics/slow", api.Slow.as_view(), name="api-analytics-slow"),
]
