"""REST resources of jobs."""

from __future__ import annotations

from django.urls import path

from console.jobs import api

urlpatterns = [
    path("jobs", api.JobList.as_view(), name="api-jobs"),
    path("jobs/<int:number>", api.JobOne.as_view(), name="api-job"),
    path("jobs/<int:number>/cancel", api.JobCancel.as_view(), name="api-job-cancel"),
]
