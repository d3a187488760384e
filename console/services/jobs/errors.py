"""Why a job cannot be started or stopped, as pages and REST resources answer it."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway import GatewayError, NotAllowedNow, NotFound
from console.services.jobs.models import Job


class QueueDown(GatewayError):
    """No worker would hear of a job."""

    status = 503
    kind = "queue-down"
    title = _("Background jobs are not available")

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            hint=_(
                "Jobs need a Redis or Valkey server and a worker. “manage.py up” starts both; "
                "elsewhere set REDIS_URL and run “celery -A console worker”."
            ),
        )


class AlreadyActive(NotAllowedNow):
    """One job of a kind at a time."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            format_lazy(_("Job {number} is waiting or running already."), number=job.pk),
            hint=_("Wait until it is done, or cancel it."),
        )
        self.job = job


class NotContinuable(NotAllowedNow):
    """Only a failed or cancelled job of a kind that can go on."""

    def __init__(self, number: int) -> None:
        super().__init__(
            format_lazy(_("Job {number} cannot be continued."), number=number),
            hint=_("Only failed and cancelled jobs of some kinds can; start a new one."),
        )


class NoSuchFile(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(
            format_lazy(_("The job has no file “{name}”."), name=name),
            hint=_("Files of jobs are kept for some days; run the job again."),
        )


class NoSuchJob(NotFound):
    def __init__(self, number: int) -> None:
        super().__init__(
            format_lazy(_("There is no job {number}."), number=number),
            hint=_("Only the newest jobs are kept."),
        )
