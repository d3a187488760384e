"""/clusters/<cluster>/acl-users/…"""

from django.urls import path

from console.areas.acl_users import views
from console.areas.acl_users.resource import ACL_USER
from console.resources.pages import page_urls
from console.resources.secrets import SecretCreatePage, secret_page_url

app_name = "acl_users"

urlpatterns = [
    path("acl-users/", views.AclUserListPage.as_view(), name="list"),
    path("acl-users/<name:acl_user>/", views.AclUserPage.as_view(), name="detail"),
    secret_page_url(ACL_USER),
    *page_urls(ACL_USER, create=SecretCreatePage),
]
