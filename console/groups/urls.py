"""/clusters/<cluster>/groups/…"""

from __future__ import annotations

from django.urls import path

from console.groups import changes, views

app_name = "groups"

urlpatterns = [
    path("groups/", views.GroupListPage.as_view(), name="list"),
    path("groups/<str:group>/", views.GroupPage.as_view(), name="detail"),
    path("groups/<str:group>/edit/", changes.GroupEditPage.as_view(), name="edit"),
    path("groups/<str:group>/delete/", changes.GroupDeletePage.as_view(), name="delete"),
    path("groups/<str:group>/clients/<str:client>/", views.ClientPage.as_view(), name="client"),
    path("create-group/", changes.GroupCreatePage.as_view(), name="create"),
]
