"""/api/v1/clusters/<cluster>/traces…"""

from __future__ import annotations

from django.urls import path

from console.traces import api

urlpatterns = [path("traces/<str:msg_id>", api.JourneyResource.as_view(), name="api-trace")]
