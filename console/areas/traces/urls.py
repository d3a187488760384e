"""/clusters/<cluster>/traces/…"""

from django.urls import path

from console.areas.traces import views

app_name = "traces"
urlpatterns = [
    path("traces/", views.FindJourneyPage.as_view(), name="find"),
    # A message id is whatever a client put into UNIQ_KEY, slashes too.
    path("traces/<path:msg_id>/", views.JourneyPage.as_view(), name="journey"),
]
