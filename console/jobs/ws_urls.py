"""/ws/clusters/<cluster>/jobs"""

from django.urls import path

from console.jobs.feed import JobsFeed

urlpatterns = [path("jobs", JobsFeed.as_asgi())]
