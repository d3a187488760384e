"""Pages of trace analytics."""

from __future__ import annotations

from django.urls import path

from console.analytics import views

app_name = "analytics"

urlpatterns = [path("analytics/", views.AnalyticsPage.as_view(), name="overview")]
