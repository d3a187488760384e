"""Pages of trace analytics."""

from django.urls import path

from console.services.analytics import views

app_name = "analytics"

urlpatterns = [
    path("analytics/", views.OverviewPage.as_view(), name="overview"),
    path("analytics/graph/", views.GraphPage.as_view(), name="graph"),
    path("analytics/slow/", views.SlowPage.as_view(), name="slow"),
]
