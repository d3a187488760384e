"""/api/v1/clusters/<cluster>/clients and …/producers"""

from django.urls import path

from console.areas.clients import api

urlpatterns = [
    path("clients", api.ConnectedList.as_view(), name="api-clients"),
    path("producers", api.ProducerGroupList.as_view(), name="api-producers"),
]
