"""/clusters/<cluster>/topics/…"""

from django.urls import path

from console.areas.topics import changes, guarded, views

app_name = "topics"

urlpatterns = [
    path("topics/", views.TopicListPage.as_view(), name="list"),
    path("topics/<str:topic>/", views.TopicPage.as_view(), name="detail"),
    path("topics/<str:topic>/edit/", changes.TopicEditPage.as_view(), name="edit"),
    path("topics/<str:topic>/delete/", changes.TopicDeletePage.as_view(), name="delete"),
    path("topics/<str:name>/protect/", guarded.TopicProtectPage.as_view(), name="protect"),
    path("topics/<str:name>/undo/<int:number>/", guarded.TopicUndoPage.as_view(), name="undo"),
    path("delete-topics/", guarded.TopicBulkDeletePage.as_view(), name="bulk-delete"),
    path("create-topic/", changes.TopicCreatePage.as_view(), name="create"),
]
