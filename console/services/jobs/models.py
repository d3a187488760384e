"""The jobs table: queue entry, live progress and history of each job in one row."""

from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.services.jobs import kinds
from console.services.jobs.states import ACTIVE, State

UNATTENDED_MS: Final = 15_000
SCOPE_CHARS_MAX: Final = 255


class Origin(models.TextChoices):
    PERSON = "person", _("by hand")
    SCHEDULE = "schedule", _("on schedule")


class Job(models.Model):
    """One run of one kind of job on one cluster.

    The row is also the lock: the database holds at most one active row per cluster, kind and scope,
    and a row whose worker is lost becomes failed (`ledger.reap`), which frees it again.
    """

    cluster = models.CharField(max_length=64)
    kind = models.CharField(max_length=kinds.NAME_CHARS_MAX)
    #: What of the cluster it is about, such as a group; empty for all of it.
    scope = models.CharField(max_length=SCOPE_CHARS_MAX, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.PERSON)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    #: When the row was last known to be looked after: queued, or by its worker.
    heartbeat_at = models.DateTimeField()
    worker = models.CharField(max_length=128, blank=True)
    cancel_requested = models.BooleanField(default=False)

    stage = models.CharField(max_length=32, blank=True)
    percent = models.FloatField(default=0)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True, blank=True)
    rate = models.FloatField(null=True, blank=True)
    detail = models.CharField(max_length=200, blank=True)
    spark_ui = models.CharField(max_length=200, blank=True)

    inputs = models.JSONField(default=dict, blank=True)
    outputs = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    log_tail = models.TextField(blank=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["cluster", "-created_at"], name="jobs_of_cluster")]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "scope"],
                condition=models.Q(state__in=sorted(ACTIVE)),
                name="one_active_job_per_scope",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk} of {self.cluster}: {self.state}"

    @property
    def what(self) -> kinds.JobKind | None:
        """Its kind; None when no area knows it any more."""
        return kinds.find(self.kind)

    @property
    def title(self) -> str:
        """Its kind, in the reader's language."""
        return str(self.what.title) if self.what else self.kind

    @property
    def stage_title(self) -> str:
        titles = self.what.stages if self.what else {}
        return str(titles.get(self.stage, self.stage))

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE

    @property
    def created_ms(self) -> int:
        return _ms(self.created_at)

    @property
    def finished_ms(self) -> int | None:
        return _ms(self.finished_at) if self.finished_at else None

    @property
    def duration_ms(self) -> int | None:
        """How long it ran, or has been running; None when it never ran."""
        if self.started_at is None:
            return None
        return _ms(self.finished_at or timezone.now()) - _ms(self.started_at)

    @property
    def reason(self) -> str:
        """Why it failed: the console's own sentences are kept in English, and told in the reader's
        language."""
        return gettext(self.error) if self.error else ""

    @property
    def is_unattended(self) -> bool:
        """It waits longer than a worker that is there would let it."""
        waited_ms = _ms(timezone.now()) - _ms(self.created_at)
        return self.state == State.QUEUED and waited_ms > UNATTENDED_MS

    @property
    def may_pause(self) -> bool:
        """Whether pausing it now is possible."""
        known = self.what is not None and self.what.can_pause
        return known and self.state == State.RUNNING and not self.cancel_requested

    @property
    def may_continue(self) -> bool:
        """Whether a new job can go on where this one ended."""
        known = self.what is not None and self.what.can_continue
        return known and self.state in (State.FAILED, State.CANCELLED)

    @property
    def results(self) -> list[tuple[str, Any]]:
        """Titles and values of what came of it, without its note."""
        titles = self.what.outputs if self.what else {}
        shown = {name: value for name, value in self.outputs.items() if name != "note"}
        return [(str(titles.get(name, name)), value) for name, value in shown.items()]

    def brief(self) -> dict[str, Any]:
        """What a live page needs to know of it."""
        return {
            "id": self.pk,
            "cluster": self.cluster,
            "kind": self.kind,
            "state": self.state,
            "stage": self.stage,
            "percent": self.percent,
            "scope": self.scope,
            "done": self.done,
            "total": self.total,
            "rate": self.rate,
            "detail": self.detail,
        }


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
