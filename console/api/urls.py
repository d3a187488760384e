"""/api/…"""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from console.api.docs import DocsPage
from console.areas import mounted
from console.clusters.api import ClusterList, ClusterOne

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", DocsPage.as_view(url_name="api-schema"), name="api-docs"),
    path("v1/clusters", ClusterList.as_view(), name="api-clusters"),
    path("v1/clusters/<str:cluster>", ClusterOne.as_view(), name="api-cluster"),
    path("v1/clusters/<str:cluster>/", include(mounted("api_urls", "cluster"))),
    path("v1/", include(mounted("api_urls", "console"))),
]
