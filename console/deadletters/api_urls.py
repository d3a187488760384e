"""REST resources of dead letters."""

from __future__ import annotations

from django.urls import path

from console.deadletters import api

urlpatterns = [
    path("", api.DeadLetterGroupList.as_view(), name="api-dlq"),
    path("/<str:group>", api.DeadLetterGroupResource.as_view(), name="api-dlq-group"),
    path("/<str:group>/messages", api.DeadLetterList.as_view(), name="api-dlq-messages"),
    path("/<str:group>/resend", api.DeadLetterResend.as_view(), name="api-dlq-resend"),
]
