"""REST resources of jobs."""

from django.urls import path

from console.services.jobs import api

urlpatterns = [
    path("jobs", api.JobList.as_view(), name="api-jobs"),
    path("jobs/kinds", api.JobKindList.as_view(), name="api-job-kinds"),
    path("jobs/<int:number>", api.JobOne.as_view(), name="api-job"),
    path("jobs/<int:number>/cancel", api.JobCancel.as_view(), name="api-job-cancel"),
    path("jobs/<int:number>/pause", api.JobPause.as_view(), name="api-job-pause"),
    path("jobs/<int:number>/resume", api.JobResume.as_view(), name="api-job-resume"),
    path("jobs/<int:number>/continue", api.JobContinue.as_view(), name="api-job-continue"),
    path("jobs/<int:number>/files", api.JobFileList.as_view(), name="api-job-files"),
    path("jobs/<int:number>/files/<str:name>", api.JobFileOne.as_view(), name="api-job-file"),
]
