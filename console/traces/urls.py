"""Pages about the journey of messages."""

from __future__ import annotations

from django.urls import path

from console.traces import views

app_name = "traces"
urlpatterns = [
    path("", views.FindJourneyPage.as_view(), name="find"),
    path("/<str:msg_id>", views.JourneyPage.as_view(), name="journey"),
]
