"""/clusters/<cluster>/groups/…"""

from django.urls import path

from console.areas.groups import changes, guarded, views

app_name = "groups"

urlpatterns = [
    path("groups/", views.GroupListPage.as_view(), name="list"),
    path("groups/<str:group>/", views.GroupPage.as_view(), name="detail"),
    path("groups/<str:group>/edit/", changes.GroupEditPage.as_view(), name="edit"),
    path("groups/<str:group>/delete/", changes.GroupDeletePage.as_view(), name="delete"),
    path("groups/<str:group>/clients/<str:client>/", views.ClientPage.as_view(), name="client"),
    path("groups/<str:name>/protect/", guarded.GroupProtectPage.as_view(), name="protect"),
    path("groups/<str:name>/undo/<int:number>/", guarded.GroupUndoPage.as_view(), name="undo"),
    path("delete-groups/", guarded.GroupBulkDeletePage.as_view(), name="bulk-delete"),
    path("create-group/", changes.GroupCreatePage.as_view(), name="create"),
]
