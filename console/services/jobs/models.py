"""The jobs table: queue entry, live progress and history of each job in one row."""

from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.services.jobs import kinds
from console.services.jobs.states import ACTIVE, State

UNATTENDED_MS: Final = 15_000
SCOPE_CHARS_MAX: Final = 255


class Origin(models.TextChoices):
    PERSON = "person", _("by hand")
    SCHEDULE = "schedule", _("on schedule")


class Job(models.Model):
    """One run of a job kind on a cluster.

    The row is also the lock: a unique constraint allows one active row per cluster, kind and scope.
    `ledger.reap` marks the row of a lost worker as failed and so releases the lock.
    """

    cluster = models.CharField(max_length=64)
    kind = models.CharField(max_length=kinds.NAME_CHARS_MAX)
    #: Subject within the cluster, such as a group; empty for the whole cluster.
    scope = models.CharField(max_length=SCOPE_CHARS_MAX, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.PERSON)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    #: Time of the enqueue or of the last heartbeat.
    heartbeat_at = models.DateTimeField()
    worker = models.CharField(max_length=128, blank=True)
    cancel_requested = models.BooleanField(default=False)

    stage = models.CharField(max_length=32, blank=True)
    stage_started_at = models.DateTimeField(null=True, blank=True)
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
    def definition(self) -> kinds.JobKind | None:
        """The job kind; None for an unregistered kind."""
        return kinds.find(self.kind)

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE

    @property
    def created_ms(self) -> int:
        return _ms(self.created_at)

    @property
    def started_ms(self) -> int | None:
        return _ms(self.started_at) if self.started_at else None

    @property
    def finished_ms(self) -> int | None:
        return _ms(self.finished_at) if self.finished_at else None

    @property
    def duration_ms(self) -> int | None:
        """Run time until the end or now; None before the start."""
        if self.started_at is None:
            return None
        return _ms(self.finished_at or timezone.now()) - _ms(self.started_at)

    @property
    def stage_ms(self) -> int | None:
        """Time in the current stage until now; None without a stage."""
        return _ms(timezone.now()) - _ms(self.stage_started_at) if self.stage_started_at else None

    @property
    def is_unattended(self) -> bool:
        """Whether the queue time suggests that no worker is running."""
        waited_ms = _ms(timezone.now()) - _ms(self.created_at)
        return self.state == State.QUEUED and waited_ms > UNATTENDED_MS

    @property
    def may_pause(self) -> bool:
        """Whether the job can be paused now."""
        known = self.definition is not None and self.definition.can_pause
        return known and self.state == State.RUNNING and not self.cancel_requested

    @property
    def may_continue(self) -> bool:
        """Whether a new job can continue this job."""
        known = self.definition is not None and self.definition.can_continue
        return known and self.state in (State.FAILED, State.CANCELLED)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
