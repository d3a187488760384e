"""/api/v1/clusters/<cluster>/dlq…"""

from __future__ import annotations

from django.urls import path

from console.deadletters import api

urlpatterns = [
    path("dlq", api.DeadLetterGroupList.as_view(), name="api-dlq"),
    path("dlq/<str:group>", api.DeadLetterGroupOne.as_view(), name="api-dlq-group"),
    path("dlq/<str:group>/messages", api.DeadLetterList.as_view(), name="api-dlq-messages"),
    path("dlq/<str:group>/resend", api.DeadLetterResend.as_view(), name="api-dlq-resend"),
]
