"""/api/v1/clusters: the list of clusters, and the overview of one cluster."""

from django.urls import path

from console.services.clusters.api import ClusterList, ClusterOne

urlpatterns = [
    path("clusters", ClusterList.as_view(), name="api-clusters"),
    path("clusters/<str:cluster>", ClusterOne.as_view(), name="api-cluster"),
]
