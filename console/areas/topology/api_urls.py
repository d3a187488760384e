"""/api/v1/clusters/<cluster>/topology"""

from django.urls import path

from console.areas.topology.api import TopologyResource

urlpatterns = [path("topology", TopologyResource.as_view(), name="api-topology")]
