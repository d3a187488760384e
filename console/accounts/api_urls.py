"""/api/v1/whoami, /api/v1/tokens…, /api/v1/roles…, /api/v1/users…, /api/v1/who-may"""

from django.urls import path

from console.accounts import api, roles_api, tokens_api, users_api

urlpatterns = [
    path("whoami", api.WhoAmI.as_view(), name="api-whoami"),
    path("roles", roles_api.RoleList.as_view(), name="api-roles"),
    path("roles/<str:role>", roles_api.RoleOne.as_view(), name="api-role"),
    path("tokens", tokens_api.TokenList.as_view(), name="api-tokens"),
    path("tokens/<str:key>", tokens_api.TokenOne.as_view(), name="api-token"),
    path("users", users_api.UserList.as_view(), name="api-users"),
    path("users/<str:username>", users_api.UserOne.as_view(), name="api-user"),
    path(
        "users/<str:username>/password", users_api.UserPassword.as_view(), name="api-user-password"
    ),
    path(
        "users/<str:username>/second-factor",
        users_api.UserSecondFactor.as_view(),
        name="api-user-second-factor",
    ),
    path("users/<str:username>/tokens", users_api.UserTokenList.as_view(), name="api-user-tokens"),
    path(
        "users/<str:username>/tokens/<str:key>",
        users_api.UserTokenOne.as_view(),
        name="api-user-token",
    ),
    path("users/<str:username>/roles", roles_api.UserRoles.as_view(), name="api-user-roles"),
    path("who-may", roles_api.WhoMay.as_view(), name="api-who-may"),
]
