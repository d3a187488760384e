"""/api/v1/clusters/<cluster>/groups/…"""

from django.urls import path

from console.areas.groups import api, guarded

urlpatterns = [
    path("groups", api.GroupList.as_view(), name="api-groups"),
    path("groups/<str:group>", api.GroupOne.as_view(), name="api-group"),
    path("groups/<str:group>/impact", api.GroupImpactNow.as_view(), name="api-group-impact"),
    path("groups/<str:group>/clients", api.ClientList.as_view(), name="api-group-clients"),
    path(
        "groups/<str:group>/clients/<str:client>", api.ClientOne.as_view(), name="api-group-client"
    ),
    path(
        "groups/<str:name>/protection",
        guarded.GroupProtection.as_view(),
        name="api-group-protection",
    ),
    path("groups:delete", guarded.GroupBulkDelete.as_view(), name="api-groups-delete"),
]
