"""/api/v1/clusters/<cluster>/clients, …/clients/<client>/kick and …/producers"""

from django.urls import path

from console.areas.clients import api, kicks

urlpatterns = [
    path("clients", api.ConnectedList.as_view(), name="api-clients"),
    path("clients/<name:client>/kick", kicks.ClientKick.as_view(), name="api-client-kick"),
    path("producers", api.ProducerGroupList.as_view(), name="api-producers"),
]
