"""/api/v1/clusters/<cluster>/acl-users/…, access-check"""

from django.urls import path

from console.areas.acl_users import api, check_api
from console.areas.acl_users.resource import ACL_USER
from console.resources.api import api_urls
from console.resources.secrets import secret_api_url

urlpatterns = [
    path("acl-users", api.AclUserList.as_view(), name="api-acl_users"),
    path("acl-users/<name:acl_user>", api.AclUserOne.as_view(), name="api-acl_user"),
    secret_api_url(ACL_USER),
    path("access-check", check_api.AccessCheck.as_view(), name="api-access-check"),
    *api_urls(ACL_USER),
]
