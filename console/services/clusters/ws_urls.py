"""/ws/clusters/<cluster>/…"""

from django.urls import path

from console.services.clusters.feeds import OverviewFeed

urlpatterns = [path("overview", OverviewFeed.as_asgi())]
