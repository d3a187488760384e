"""/clusters/<cluster>/topology/"""

from django.urls import path

from console.areas.topology import views

app_name = "topology"

urlpatterns = [path("topology/", views.TopologyPage.as_view(), name="live")]
