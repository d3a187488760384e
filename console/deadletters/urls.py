"""Pages about dead letters."""

from __future__ import annotations

from django.urls import path

from console.deadletters import views

app_name = "deadletters"
urlpatterns = [
    path("", views.GroupListPage.as_view(), name="list"),
    path("/<str:group>", views.LetterListPage.as_view(), name="group"),
    path("/<str:group>/resend", views.ResendPage.as_view(), name="resend"),
    path("/<str:group>/<str:offset_msg_id>", views.LetterPage.as_view(), name="letter"),
]
