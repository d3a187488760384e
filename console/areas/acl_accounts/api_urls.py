"""/api/v1/clusters/<cluster>/acl-accounts/…, /acl-white-list and /acl-states."""

from django.urls import path

from console.areas.acl_accounts import api
from console.areas.acl_accounts.resource import ACL_ACCOUNT, WHITE_LIST_NAME
from console.resources.api import api_urls
from console.resources.secrets import secret_api_url

urlpatterns = [
    path("acl-accounts", api.AclAccountList.as_view(), name="api-acl_accounts"),
    path("acl-accounts/<name:acl_account>", api.AclAccountOne.as_view(), name="api-acl_account"),
    path("acl-states", api.AclStates.as_view(), name="api-acl_states"),
    path("acl-white-list", api.AclWhiteList.as_view(), WHITE_LIST_NAME, name="api-acl_white_list"),
    secret_api_url(ACL_ACCOUNT),
    *api_urls(ACL_ACCOUNT),
]
