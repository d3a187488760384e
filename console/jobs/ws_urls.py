"""/ws/clusters/<cluster>/jobs"""

from __future__ import annotations

from django.urls import path

from console.jobs.feed import JobsFeed

urlpatterns = [path("jobs", JobsFeed.as_asgi())]
