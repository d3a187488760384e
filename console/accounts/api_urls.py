"""/api/v1/whoami, /api/v1/roles…, /api/v1/users/…/roles, /api/v1/who-may"""

from django.urls import path

from console.accounts import api, roles_api

urlpatterns = [
    path("whoami", api.WhoAmI.as_view(), name="api-whoami"),
    path("roles", roles_api.RoleList.as_view(), name="api-roles"),
    path("roles/<str:role>", roles_api.RoleOne.as_view(), name="api-role"),
    path("users/<str:username>/roles", roles_api.UserRoles.as_view(), name="api-user-roles"),
    path("who-may", roles_api.WhoMay.as_view(), name="api-who-may"),
]
