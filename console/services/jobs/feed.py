"""The live feed of jobs.

/ws/clusters/<cluster>/jobs sends JSON after every change of a job:

    {"id": 7, "kind": "ingest", "state": "running", "stage": "read", "percent": 31.5, …}
"""

from console.services.jobs.models import Job
from console.services.jobs.presentation import change_of
from console.web.live import announced


class JobsFeed(announced.AnnouncedFeed):
    """Changes of the cluster's jobs."""

    group = "jobs"


def announce(job: Job) -> None:
    """Notify open pages of a changed job."""
    announced.announce(JobsFeed.group, job.cluster, change_of(job))
