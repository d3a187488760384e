"""/clusters/<cluster>/acl-accounts/… and /clusters/<cluster>/acl-white-list/…"""

from django.urls import include, path

from console.areas.acl_accounts import views
from console.areas.acl_accounts.resource import ACL_ACCOUNT, WHITE_LIST, WHITE_LIST_NAME
from console.resources.pages import EditableUndoPage, EditPage, page_urls
from console.resources.secrets import SecretCreatePage, secret_page_url

app_name = "acl_accounts"

_white_list = [
    path("edit/", EditPage.of(WHITE_LIST), WHITE_LIST_NAME, name="edit"),
    path("<name:name>/undo/<int:number>/", EditableUndoPage.of(WHITE_LIST), name="undo"),
]
urlpatterns = [
    path("acl-accounts/", views.AclAccountListPage.as_view(), name="list"),
    path("acl-accounts/<name:acl_account>/", views.AclAccountPage.as_view(), name="detail"),
    path("acl-white-list/", include((_white_list, "white_list"))),
    secret_page_url(ACL_ACCOUNT),
    *page_urls(ACL_ACCOUNT, create=SecretCreatePage),
]
