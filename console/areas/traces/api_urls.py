"""/api/v1/clusters/<cluster>/traces…"""

from django.urls import path

from console.areas.traces import api

# UNIQ_KEY is set by the client and may contain slashes.
urlpatterns = [path("traces/<path:msg_id>", api.JourneyOne.as_view(), name="api-trace")]
