"""/clusters/<cluster>/dlq/…"""

from __future__ import annotations

from django.urls import path

from console.deadletters import views

app_name = "deadletters"
urlpatterns = [
    path("dlq/", views.GroupListPage.as_view(), name="list"),
    path("dlq/<str:group>/", views.LetterListPage.as_view(), name="group"),
    path("dlq/<str:group>/resend/", views.ResendPage.as_view(), name="resend"),
    path("dlq/<str:group>/<str:offset_msg_id>/", views.LetterPage.as_view(), name="letter"),
]
