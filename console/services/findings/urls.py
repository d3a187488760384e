"""/clusters/<cluster>/findings/"""

from django.urls import path

from console.services.findings import views

app_name = "findings"

urlpatterns = [
    path("findings/", views.FindingsPage.as_view(), name="list"),
    path("findings/verdict/", views.VerdictPart.as_view(), name="verdict"),
    path("findings/object/", views.ObjectPart.as_view(), name="object"),
]
