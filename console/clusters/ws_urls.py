"""/ws/clusters/<cluster>/…"""

from __future__ import annotations

from django.urls import path

from console.clusters.feeds import OverviewFeed

urlpatterns = [path("overview", OverviewFeed.as_asgi())]
