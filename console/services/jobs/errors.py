"""Errors of job actions, as responses of pages and REST resources."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway import GatewayError, NotAllowedNow, NotFound
from console.project_files import COMMAND
from console.services.jobs.models import Job


class QueueDown(GatewayError):
    """The task queue does not answer."""

    status = 503
    kind = "queue-down"
    title = _("Background jobs are not available")

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            hint=format_lazy(
                _(
                    "Jobs need a Redis or Valkey server and a worker. “{command} up” starts both; "
                    "elsewhere set REDIS_URL and run “celery -A console worker”."
                ),
                command=COMMAND,
            ),
        )


class AlreadyActive(NotAllowedNow):
    """A job of the kind and scope is already active."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            format_lazy(_("Job {number} is waiting or running already."), number=job.pk),
            hint=_("Wait until it is done, or cancel it."),
        )
        self.job = job


class NotContinuable(NotAllowedNow):
    """The job cannot be continued."""

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
