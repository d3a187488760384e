"""/clusters/<cluster>/acl-users/…"""

from django.urls import path

from console.areas.acl_users import views
from console.areas.acl_users.resource import ACL_USER
from console.resources.pages import page_urls

app_name = "acl_users"

urlpatterns = [
    path("acl-users/", views.AclUserListPage.as_view(), name="list"),
    path("acl-users/<name:acl_user>/", views.AclUserPage.as_view(), name="detail"),
    path("acl-users/<name:acl_user>/password/", views.PasswordPage.as_view(), name="password"),
    *page_urls(ACL_USER, create=views.AclUserCreatePage),
]
