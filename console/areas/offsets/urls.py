"""/clusters/<cluster>/groups/<group>/offsets/…"""

from django.urls import path

from console.areas.offsets import views

app_name = "offsets"
urlpatterns = [
    path("groups/<name:group>/offsets/", views.OffsetsPage.as_view(), name="wizard"),
    path("groups/<name:group>/offsets/<int:number>/", views.ResetPage.as_view(), name="reset"),
    path("groups/<name:group>/offsets/<int:number>/undo/", views.UndoPage.as_view(), name="undo"),
]
