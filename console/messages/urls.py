"""Pages about stored messages."""

from __future__ import annotations

from django.urls import path

from console.messages import views

app_name = "message"
urlpatterns = [
    path("", views.MessageListPage.as_view(), name="list"),
    path("/find", views.FindPage.as_view(), name="find"),
    path("/<str:offset_msg_id>", views.MessagePage.as_view(), name="detail"),
    path("/<str:offset_msg_id>/body", views.BodyDownload.as_view(), name="body"),
]
