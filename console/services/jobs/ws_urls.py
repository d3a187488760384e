"""/ws/clusters/<cluster>/jobs"""

from django.urls import path

from console.services.jobs.feed import JobsFeed

urlpatterns = [path("jobs", JobsFeed.as_asgi())]
