"""Pages about jobs."""

from __future__ import annotations

from django.urls import path

from console.jobs import views

app_name = "jobs"

urlpatterns = [
    path("jobs/", views.JobListPage.as_view(), name="list"),
    path("jobs/start/<str:kind>/", views.StartPage.as_view(), name="start"),
    path("jobs/<int:number>/", views.JobPage.as_view(), name="detail"),
    path("jobs/<int:number>/cancel/", views.CancelPage.as_view(), name="cancel"),
]
