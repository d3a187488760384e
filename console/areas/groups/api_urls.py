"""/api/v1/clusters/<cluster>/groups/…"""

from django.urls import path

from console.areas.groups import api
from console.areas.groups.resource import GROUP
from console.resources.api import api_urls
from console.resources.labels_api import label_urls

urlpatterns = [
    path("groups", api.GroupList.as_view(), name="api-groups"),
    path("groups/<name:group>", api.GroupOne.as_view(), name="api-group"),
    path("groups/<name:group>/clients", api.ClientList.as_view(), name="api-group-clients"),
    path(
        "groups/<name:group>/clients/<name:client>",
        api.ClientOne.as_view(),
        name="api-group-client",
    ),
    *api_urls(GROUP),
    *label_urls(GROUP),
]
