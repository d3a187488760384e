"""/clusters/<cluster>/traces/…"""

from django.urls import path

from console.areas.traces import views

app_name = "traces"
urlpatterns = [
    path("traces/", views.FindJourneyPage.as_view(), name="find"),
    # UNIQ_KEY is set by the client and may contain slashes.
    path("traces/<path:msg_id>/", views.JourneyPage.as_view(), name="journey"),
]
