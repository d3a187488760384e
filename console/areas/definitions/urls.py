"""/clusters/<cluster>/definitions/"""

from django.urls import path

from console.areas.definitions import views

app_name = "definitions"

urlpatterns = [
    path("definitions/", views.DefinitionsPage.as_view(), name="page"),
    path("definitions/download/", views.DownloadView.as_view(), name="download"),
]
