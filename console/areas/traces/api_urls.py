"""/api/v1/clusters/<cluster>/traces…"""

from django.urls import path

from console.areas.traces import api

# A message id is whatever a client put into UNIQ_KEY, slashes too.
urlpatterns = [path("traces/<path:msg_id>", api.JourneyOne.as_view(), name="api-trace")]
