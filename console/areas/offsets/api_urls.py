"""/api/v1/clusters/<cluster>/groups/<group>/offsets…"""

from django.urls import path

from console.areas.offsets import api

urlpatterns = [
    path("groups/<name:group>/offsets", api.OffsetList.as_view(), name="api-offsets"),
    path("groups/<name:group>/offsets/resets", api.ResetList.as_view(), name="api-offset-resets"),
    path(
        "groups/<name:group>/offsets/resets/<int:number>",
        api.ResetOne.as_view(),
        name="api-offset-reset",
    ),
    path(
        "groups/<name:group>/offsets/resets/<int:number>/undo",
        api.ResetUndo.as_view(),
        name="api-offset-reset-undo",
    ),
]
