"""/clusters/<cluster>/messages/…"""

from __future__ import annotations

from django.urls import path

from console.messages import tail_page, views

app_name = "message"
urlpatterns = [
    path("messages/", views.MessageListPage.as_view(), name="list"),
    path("messages/find/", views.FindPage.as_view(), name="find"),
    path("messages/tail/", tail_page.TailPage.as_view(), name="tail"),
    path("messages/<str:offset_msg_id>/", views.MessagePage.as_view(), name="detail"),
    path("messages/<str:offset_msg_id>/body/", views.BodyDownload.as_view(), name="body"),
]
