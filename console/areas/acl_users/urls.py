"""/clusters/<cluster>/acl-users/…, access-check/"""

from django.urls import path

from console.areas.acl_users import checks, views
from console.areas.acl_users.resource import ACL_USER
from console.resources.pages import page_urls
from console.resources.secrets import SecretCreatePage, secret_page_url

app_name = "acl_users"

urlpatterns = [
    path("acl-users/", views.AclUserListPage.as_view(), name="list"),
    path("acl-users/<name:acl_user>/", views.AclUserPage.as_view(), name="detail"),
    secret_page_url(ACL_USER),
    path("access-check/", checks.AccessCheckPage.as_view(), name="check"),
    *page_urls(ACL_USER, create=SecretCreatePage),
]
