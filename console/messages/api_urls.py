"""REST resources of stored messages."""

from __future__ import annotations

from django.urls import path

from console.messages import api

urlpatterns = [
    path("", api.MessageList.as_view(), name="api-messages"),
    path("/find", api.MessageFind.as_view(), name="api-messages-find"),
    path("/<str:offset_msg_id>", api.MessageResource.as_view(), name="api-message"),
    path("/<str:offset_msg_id>/body", api.MessageBody.as_view(), name="api-message-body"),
]
