"""The debug bundle as a job: its file is a download of the job."""

import tempfile
from typing import TYPE_CHECKING, Final

from console.frame.access import Need
from console.frame.permissions import Target
from console.gateway import gateway
from console.services.bundles.bundle import Written, write
from console.services.bundles.parts import PARTS
from console.services.jobs import files
from console.services.jobs.models import Job
from console.services.jobs.reports import Done

if TYPE_CHECKING:
    from console.services.jobs.control import Control

KIND: Final = "debug-bundle"
COPY_BYTES: Final = 1 << 20


def reach(job: Job) -> tuple[tuple[Need, Target], ...]:
    """A bundle has logs and metrics of the whole console."""
    return ((Need.ADMIN, Target("jobs")),)


def work(job: Job, control: "Control") -> Done:
    """Write the bundle of the job's cluster."""
    cluster = gateway.cluster(job.cluster)
    written = Written()
    # A ZIP seeks back to its headers; the file of a job is written once.
    with tempfile.TemporaryFile() as draft:
        for written in write(cluster, draft):
            control.check()
            done = min(len(PARTS), written.parts)
            control.moved(stage="collect", done=done, total=len(PARTS))
        draft.seek(0)
        with files.writing(job.pk, f"debug-bundle-{job.cluster}.zip") as file:
            while piece := draft.read(COPY_BYTES):
                file.write(piece)
    failed = ", ".join(written.failed)
    return Done(done=len(written.files), outputs={"files": len(written.files), "failed": failed})
