"""/api/v1/clusters/<cluster>/replica-sets"""

from django.urls import path

from console.services.replicas import api

urlpatterns = [
    path("controllers", api.ControllerList.as_view(), name="api-controllers"),
    path("replica-sets", api.ReplicaSetList.as_view(), name="api-replica-sets"),
    path("replica-sets/<name:broker>", api.ReplicaSetOne.as_view(), name="api-replica-set"),
    path(
        "replica-sets/<name:broker>/role-changes",
        api.RoleChangeList.as_view(),
        name="api-role-changes",
    ),
    path(
        "replica-sets/<name:broker>/election", api.Election.as_view(), name="api-replica-election"
    ),
]
